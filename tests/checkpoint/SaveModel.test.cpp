// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/SaveModel.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "base/Bf16.hpp"
#include "base/Log.hpp"
#include "checkpoint/Pieces.hpp"
#include "checkpoint/SmallTraining.hpp"
#include "support/Bits.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

// What training makes of each weight here; the product needs more bits than a bf16 has.
constexpr float kFactor = 1.5f + 1.0f / 1024.0f;

// Saves the small model with all weights changed. Collective over the world.
void save_changed(const Ranks& ranks, ModelFiles& files, int tp, WeightType type,
                  const fs::path& directory) {
  SmallTraining training(ranks, files, tp, type);
  training.model.load_masters();
  const FloatVector master = training.model.optimizer().master();
  for (std::size_t i = 0; i < master.size(); ++i) master(i) *= kFactor;
  save_model(files, training.model, directory);
}

}  // namespace

TEST_CASE("a saved model has the masters' values in the forward type, in any layout") {
  const TestRanks world;
  const Scratch scratch;
  ModelFiles files(kSmallModel);
  const HuggingFaceReader before = files.open_weights();
  for (const WeightType type : {WeightType::kF32, WeightType::kBf16})
    for (const int tp : some_degrees()) {
      INFO("tensor-parallel degree " << tp);
      const fs::path directory = scratch / ("model" + std::to_string(tp));
      save_changed(world.ranks, files, tp, type, directory);
      const ModelFiles saved(directory);
      CHECK(model_config_json(saved.config, "") == model_config_json(files.config, ""));
      CHECK_THAT(slurp(directory / "config.json"),
                 ContainsSubstring(type == WeightType::kBf16 ? "bfloat16" : "float32"));
      const HuggingFaceReader after = saved.open_weights();
      for (int id = 0; id < files.table.pieces(); ++id) {
        std::vector<float> expected = read_piece(files, before, id);
        for (float& value : expected) {
          value *= kFactor;
          if (type == WeightType::kBf16) value = to_float(to_bf16(value));
        }
        REQUIRE(same_bits(read_piece(files, after, id), expected));
      }
    }
}

TEST_CASE("the same weights give the same file, whatever the layout") {
  const TestRanks world;
  const Scratch scratch;
  ModelFiles files(kSmallModel);
  for (const int tp : some_degrees())
    save_changed(world.ranks, files, tp, WeightType::kBf16, scratch / std::to_string(tp));
  const std::string first = slurp(scratch / "1" / "model.safetensors");
  CHECK(!first.empty());
  for (const int tp : some_degrees()) {
    const bool same = slurp(scratch / std::to_string(tp) / "model.safetensors") == first;
    CHECK(same);
  }
}

TEST_CASE("a model is replaced as a whole, and brings the tokenizer of its source") {
  const TestRanks world;
  const Scratch scratch;
  const fs::path source = scratch / "source", target = scratch / "target";
  if (world.ranks.rank() == 0) {
    fs::create_directories(source);
    for (const char* name : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(kSmallModel) / name, source / name);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(fs::path(TAPER_DATA_DIR "/model") / name, source / name);
    spill(source / "notes.txt", "stays where it is");
    fs::create_directories(target);
    spill(target / "config.json", "{}");
    spill(target / "old.safetensors", "goes");
  }
  barrier(world.ranks.world());
  ModelFiles files(source);
  save_changed(world.ranks, files, 1, WeightType::kF32, target.string() + "/");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(target)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json",
                                          "tokenizer_config.json"});
  CHECK(slurp(target / "tokenizer.json") == slurp(source / "tokenizer.json"));
  CHECK(ModelFiles(target).valid_ids() == files.valid_ids());
  CHECK(std::distance(fs::directory_iterator(scratch.path()), {}) == 2);  // nothing beside it
}

TEST_CASE("only a new or empty directory, or a model, may be replaced") {
  const Scratch scratch;
  const auto problem = [](const fs::path& directory) {
    return message_of([&] { require_model_target("--output", directory); });
  };
  const fs::path empty = scratch / ("empty" + std::to_string(log_rank())),
                 other = scratch / ("other" + std::to_string(log_rank()));
  fs::create_directories(empty);
  fs::create_directories(other);
  CHECK(problem(scratch / "new").empty());
  CHECK(problem(empty).empty());
  CHECK(problem(kSmallModel).empty());
  spill(other / "thesis.tex", "\\section{Introduction}");
  CHECK_THAT(problem(other), ContainsSubstring("--output " + other.string()) &&
                                 ContainsSubstring("something other than a model"));
  CHECK(!problem(other / "thesis.tex").empty());
}
