// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/StateFile.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "checkpoint/SmallTraining.hpp"
#include "io/Hdf5File.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

// Element i of a piece, of masters (kind 0), first (1) or second moments (2); no two are equal.
float value_of(const ParamTable& table, int kind, int piece, std::int64_t i) {
  constexpr std::int64_t kMostElements = 1 << 14;  // of a piece; its number needs 10 bits more
  return static_cast<float>((std::int64_t{kind} * table.pieces() + piece) * kMostElements + i);
}

std::array<FloatVector, 3> state_of(const SmallTraining& training) {
  const ShardedAdamW& optimizer = training.model.optimizer();
  return {optimizer.master(), optimizer.first_moment(), optimizer.second_moment()};
}

void fill(const SmallTraining& training, const ParamTable& table) {
  const auto state = state_of(training);
  training.each_piece([&](const LocalParams::Piece& piece, std::int64_t begin) {
    for (int kind = 0; kind < 3; ++kind)
      for (std::int64_t i = 0; i < piece.size; ++i)
        state[kind](begin + i) = value_of(table, kind, piece.id, i);
  });
}

// How many elements of this rank's optimizer are not those of fill().
std::int64_t differences(const SmallTraining& training, const ParamTable& table) {
  const auto state = state_of(training);
  std::int64_t count = 0;
  training.each_piece([&](const LocalParams::Piece& piece, std::int64_t begin) {
    for (int kind = 0; kind < 3; ++kind)
      for (std::int64_t i = 0; i < piece.size; ++i)
        if (state[kind](begin + i) != value_of(table, kind, piece.id, i)) ++count;
  });
  return count;
}

StateInfo some_info() {
  StateInfo info{7, 3, 11, "Training: {Iterations: 9}\n", "sixteen bytes .."};
  info.examples = {"sft", 5, std::uint64_t{1} << 63 | 6};
  info.kl_coef = 0.3;
  info.prompt_batches = 8;
  info.rounds = std::string(24, '\3');
  info.anchors = {{5, 1500000000}, {std::uint64_t{1} << 63 | 7, 2}};
  return info;
}

void check_equal(const StateInfo& a, const StateInfo& b) {
  CHECK(a.iteration == b.iteration);
  CHECK(a.optimizer_steps == b.optimizer_steps);
  CHECK(a.seed == b.seed);
  CHECK(a.config == b.config);
  CHECK(a.planner == b.planner);
  CHECK(a.examples == b.examples);
  CHECK(a.kl_coef == b.kl_coef);
  CHECK(a.prompt_batches == b.prompt_batches);
  CHECK(a.rounds == b.rounds);
  CHECK(a.anchors == b.anchors);
}

// A state of the small model as fill() makes it. Collective over the world.
void write(const Ranks& ranks, ModelFiles& files, int tp, const StateInfo& info,
           const fs::path& path) {
  const SmallTraining training(ranks, files, tp);
  fill(training, files.table);
  write_state(path, files, training.model, info);
  barrier(ranks.world());
}

}  // namespace

TEST_CASE("a state is read in any layout, whatever layout wrote it") {
  const TestRanks world;
  const Scratch scratch;
  ModelFiles files(kSmallModel);
  const fs::path path = scratch / "state.h5";
  REQUIRE(3 * files.table.pieces() < 1 << 10);  // or an f32 does not hold all values
  for (const int from : some_degrees()) {
    write(world.ranks, files, from, some_info(), path);
    CHECK(state_damage(path).empty());
    for (const int to : some_degrees()) {
      INFO("from tensor-parallel degree " << from << " to " << to);
      SmallTraining training(world.ranks, files, to);
      const StateInfo info = read_state(path, files, training.model);
      check_equal(info, some_info());
      CHECK(info.layout == std::to_string(from) + "x" + std::to_string(world_size() / from));
      CHECK(training.model.optimizer().steps() == 3);
      CHECK(differences(training, files.table) == 0);
    }
    barrier(world.ranks.world());  // before the file is written anew
  }
}

TEST_CASE("what a run does not have stays away, and the head of the file is enough for it") {
  const TestRanks world;
  const Scratch scratch;
  ModelFiles files(kSmallModel);
  const fs::path path = scratch / "state.h5";
  const StateInfo info{2, 2, 5, ""};
  write(world.ranks, files, 1, info, path);
  const StateInfo found = read_state_info(path, files);
  check_equal(found, info);
  CHECK(!found.kl_coef);
  CHECK(found.anchors.empty());
  CHECK(!Hdf5File::open_read(path).exists("/anchors"));
  CHECK(found.planner.empty());
  CHECK(!found.examples);
}

TEST_CASE("files of earlier versions do not say whose examples they count") {
  const TestRanks world;
  const Scratch scratch;
  ModelFiles files(kSmallModel);
  const fs::path path = scratch / "state.h5";
  StateInfo info = some_info();
  info.examples->command.clear();  // writes what they have
  write(world.ranks, files, 1, info, path);
  const StateInfo found = read_state_info(path, files);
  check_equal(found, info);
  CHECK(found.examples->is_of("sft"));
  CHECK(found.examples->is_of("reward-model"));
  CHECK(some_info().examples->is_of("sft"));
  CHECK(!some_info().examples->is_of("reward-model"));
}

TEST_CASE("a state of another model, or no state, is refused") {
  const TestRanks world;
  const Scratch scratch;
  ModelFiles files(kSmallModel), other(TAPER_GOLDEN_DIR "/models/qwen3_a");
  const fs::path path = scratch / "state.h5";
  write(world.ranks, files, 1, some_info(), path);
  CHECK_THAT(message_of([&] { read_state_info(path, other); }),
             ContainsSubstring(path.string() + " belongs to another model (llama layers 2") &&
                 ContainsSubstring("not qwen3 "));
  SmallTraining training(world.ranks, other, 1);
  CHECK_THAT(message_of([&] { read_state(path, other, training.model); }),
             ContainsSubstring("belongs to another model"));
  barrier(world.ranks.world());
  if (world.ranks.rank() == 0) spill(path, "no HDF5 file");
  barrier(world.ranks.world());
  CHECK_THROWS_AS(read_state_info(path, files), Error);
  CHECK_THROWS_AS(state_damage(path), Error);
}

TEST_CASE("a flipped bit is named by its tensor and unit, where it is read") {
  const TestRanks world;
  const Scratch scratch;
  ModelFiles files(kSmallModel);
  const fs::path path = scratch / "state.h5";
  write(world.ranks, files, world_size(), some_info(), path);
  const int tensor = files.table.index_of(ParamRole::kQuery, 1), unit = 2;
  const int piece = files.table.first_piece(tensor) + unit;
  const std::string name = files.table.tensors()[tensor].name;
  std::string bytes = slurp(path);
  const std::array<float, 2> values{value_of(files.table, 2, piece, 0),
                                    value_of(files.table, 2, piece, 1)};
  const auto at =
      bytes.find(std::string(reinterpret_cast<const char*>(values.data()), sizeof values));
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  barrier(world.ranks.world());
  if (world.ranks.rank() == 0) spill(path, bytes);
  barrier(world.ranks.world());
  CHECK(state_damage(path) ==
        std::vector<std::string>{"/second/" + name + ": unit 2 is damaged (its checksum differs)"});
  SmallTraining training(world.ranks, files, 1);
  bool is_mine = false;
  training.each_piece(
      [&](const LocalParams::Piece& owned, std::int64_t) { is_mine |= owned.id == piece; });
  const std::string error = message_of([&] { read_state(path, files, training.model); });
  if (is_mine)
    CHECK_THAT(error,
               ContainsSubstring(path.string() + ": unit 2 of 'second/" + name + "' is damaged"));
  else
    CHECK(error.empty());
}
