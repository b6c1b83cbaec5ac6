// SPDX-License-Identifier: Apache-2.0
#include "results/RolloutFile.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <thread>

#include "base/Error.hpp"
#include "io/AtomicFile.hpp"
#include "io/Hdf5File.hpp"
#include "io/MpiCall.hpp"
#include "results/detail/RolloutExchange.hpp"
#include "support/Scratch.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::Error;
using taper::FinishReason;
using taper::RolloutRecord;
using taper::test::Scratch;
using taper::test::slurp;

namespace {

int rank() {
  return taper::detail::comm_rank(MPI_COMM_WORLD);
}
int ranks() {
  return taper::detail::comm_size(MPI_COMM_WORLD);
}

// Some prompt and response lengths are 0, some samples have kept masses or layout spans.
RolloutRecord make_record(std::int64_t group, std::int32_t sample) {
  RolloutRecord record;
  record.id.prompt = group;
  record.id.sample = sample;
  record.prompt_length = static_cast<std::int32_t>(group % 3);
  const auto response = (7 * group + 3 * sample) % 40;
  for (std::int64_t i = 0; i < record.prompt_length + response; ++i) {
    record.tokens.push_back(static_cast<std::int32_t>(1000 * group + 100 * sample + i));
  }
  for (std::int64_t i = 0; i < response; ++i)
    record.log_probs.push_back(-0.25f * static_cast<float>(i + sample));
  if (group % 2 == 1)
    record.kept_mass.assign(record.log_probs.size(), 0.5f + 0.125f * static_cast<float>(sample));
  if (group % 3 > 0) record.values.assign(record.log_probs.size(), static_cast<float>(group));
  record.rewards = {static_cast<float>(sample), 0.5f};
  record.advantage = 0.1 * static_cast<double>(sample) - 0.2;
  record.finish = static_cast<FinishReason>((group + sample) % 4);
  for (int i = 0; i < sample; ++i) record.layout.push_back({10 * i, 1 << i, i});
  return record;
}

std::vector<RolloutRecord> all_records(std::int64_t groups, std::int32_t samples) {
  std::vector<RolloutRecord> records;
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int32_t sample = 0; sample < samples; ++sample)
      records.push_back(make_record(group, sample));
  }
  return records;
}

// Who brings which record: dealt out in turn, all to the last rank, or split in reversed blocks.
enum class Deal { kInTurn, kLastRank, kReversedBlocks };

std::vector<RolloutRecord> my_part(const std::vector<RolloutRecord>& all, Deal deal) {
  std::vector<RolloutRecord> mine;
  const auto count = all.size(), size = static_cast<std::size_t>(ranks());
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t owner = i % size;
    if (deal == Deal::kLastRank) owner = size - 1;
    if (deal == Deal::kReversedBlocks) owner = size - 1 - i * size / count;
    if (owner == static_cast<std::size_t>(rank())) mine.push_back(all[i]);
  }
  return mine;
}

const taper::RolloutFileOptions kOptions{.iteration = 7, .reward_names = {"correct", "format"}};
// All ranks write.
const taper::RolloutFileOptions kManyWriters = [] {
  auto options = kOptions;
  options.bytes_per_writer = 1;
  return options;
}();

}  // namespace

TEST_CASE("rollouts come back in the order of their keys, whoever brought and wrote them") {
  const auto groups = GENERATE(0, 1, 13);
  const auto all = all_records(groups, 3);
  const auto deal = GENERATE(Deal::kInTurn, Deal::kLastRank, Deal::kReversedBlocks);
  const auto& options = deal == Deal::kReversedBlocks ? kManyWriters : kOptions;
  const Scratch scratch;
  const auto path = scratch / "rollouts/iter_000007.h5";
  taper::write_rollouts(path, MPI_COMM_WORLD, my_part(all, deal), options);
  CHECK_FALSE(std::filesystem::exists(taper::part_path(path)));
  const auto set = taper::read_rollouts(path);
  CHECK(set.iteration == 7);
  CHECK(set.reward_names == kOptions.reward_names);
  CHECK(set.records == all);
}

TEST_CASE("one writer gives equal rollouts equal bytes") {
  const auto all = all_records(20, 4);
  const Scratch scratch;
  taper::write_rollouts(scratch / "a.h5", MPI_COMM_WORLD, my_part(all, Deal::kInTurn), kOptions);
  // The clock of the file's objects, in seconds, must not be in it.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  taper::write_rollouts(scratch / "b.h5", MPI_COMM_WORLD, my_part(all, Deal::kReversedBlocks),
                        kOptions);
  const bool equal = slurp(scratch / "a.h5") == slurp(scratch / "b.h5");
  CHECK(equal);
}

TEST_CASE("every dataset says what it is") {
  const Scratch scratch;
  taper::write_rollouts(scratch / "a.h5", MPI_COMM_WORLD, my_part(all_records(2, 2), Deal::kInTurn),
                        kOptions);
  const auto file = taper::Hdf5File::open_read(scratch / "a.h5");
  for (const auto& name : file.datasets()) {
    CAPTURE(name);
    CHECK_FALSE(file.string_attribute(name, "units").empty());
    CHECK_FALSE(file.string_attribute(name, "description").empty());
  }
  CHECK_THAT(file.string_attribute("/finish", "description"),
             ContainsSubstring("0 eos, 1 stop, 2 length, 3 abort"));
  CHECK(file.read<float>("/rewards").dims == taper::Dims{4, 2});
}

TEST_CASE("kept masses and values are stored where there are some") {
  const Scratch scratch;
  auto all = all_records(8, 3);
  taper::write_rollouts(scratch / "cut.h5", MPI_COMM_WORLD, my_part(all, Deal::kInTurn), kOptions);
  CHECK(taper::Hdf5File::open_read(scratch / "cut.h5").exists("/kept_mass"));
  CHECK(taper::Hdf5File::open_read(scratch / "cut.h5").exists("/values"));
  for (auto& record : all) {
    record.kept_mass.clear();
    record.values.clear();
  }
  taper::write_rollouts(scratch / "whole.h5", MPI_COMM_WORLD, my_part(all, Deal::kInTurn),
                        kOptions);
  CHECK(!taper::Hdf5File::open_read(scratch / "whole.h5").exists("/kept_mass"));
  CHECK(!taper::Hdf5File::open_read(scratch / "whole.h5").exists("/values"));
  CHECK(taper::read_rollouts(scratch / "whole.h5").records == all);
}

TEST_CASE("the places of prompts in the stream are stored where rounds may put them off") {
  const Scratch scratch;
  const auto all = all_records(3, 2);
  taper::RolloutFileOptions options = kOptions;
  taper::write_rollouts(scratch / "plain.h5", MPI_COMM_WORLD, my_part(all, Deal::kInTurn), options);
  CHECK(!taper::read_rollouts(scratch / "plain.h5").has_rounds);
  std::int64_t last = 0;
  for (const auto& record : all) last = std::max(last, record.id.prompt);
  for (std::int64_t i = 0; i <= last; ++i) options.stream.push_back(40 + 2 * i);
  taper::write_rollouts(scratch / "tail.h5", MPI_COMM_WORLD, my_part(all, Deal::kReversedBlocks),
                        options);
  CHECK(taper::read_rollouts(scratch / "tail.h5").has_rounds);
  const auto file = taper::Hdf5File::open_read(scratch / "tail.h5");
  const auto stream = file.read<std::int64_t>("/stream_index").values;
  REQUIRE(stream.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(stream[i] == 40 + 2 * all[i].id.prompt);
}

TEST_CASE("a rollout without reward components") {
  const Scratch scratch;
  auto all = all_records(3, 1);
  for (auto& record : all) record.rewards.clear();
  taper::write_rollouts(scratch / "a.h5", MPI_COMM_WORLD, my_part(all, Deal::kInTurn), {});
  CHECK(taper::read_rollouts(scratch / "a.h5").records == all);
}

TEST_CASE("a bad record on one rank throws on all, and leaves no file") {
  const Scratch scratch;
  auto bad = make_record(5, 1);
  const std::string says = GENERATE(as<std::string>{}, "log-probs", "kept masses", "values",
                                    "rewards", "prompt", "finish");
  if (says == "log-probs") bad.log_probs.push_back(0);
  if (says == "kept masses") bad.kept_mass.resize(bad.log_probs.size() + 1);
  if (says == "values") bad.values.resize(bad.log_probs.size() + 1);
  if (says == "rewards") bad.rewards.pop_back();
  if (says == "prompt") bad.prompt_length = static_cast<std::int32_t>(bad.tokens.size()) + 1;
  if (says == "finish") bad.finish = static_cast<FinishReason>(4);
  std::vector<RolloutRecord> mine = {make_record(rank() + 10, 0)};
  if (rank() == ranks() - 1) mine.push_back(bad);
  CHECK_THROWS_MATCHES(
      taper::write_rollouts(scratch / "a.h5", MPI_COMM_WORLD, mine, kOptions), Error,
      MessageMatches(ContainsSubstring("sample 1 of group 5") && ContainsSubstring(says)));
  CHECK(std::filesystem::is_empty(scratch.path()));
}

TEST_CASE("a key brought twice throws on all") {
  const Scratch scratch;
  std::vector<RolloutRecord> mine = {make_record(rank(), 0)};
  if (rank() == 0) mine.push_back(make_record(ranks() - 1, 0));
  CHECK_THROWS_MATCHES(taper::write_rollouts(scratch / "a.h5", MPI_COMM_WORLD, mine, kOptions),
                       Error, MessageMatches(ContainsSubstring("brought twice")));
}

TEST_CASE("a place that cannot be written throws on all") {
  const Scratch scratch;
  if (rank() == 0) {
    taper::test::spill(scratch / "plain", "");
    std::filesystem::create_directories(scratch / "full/inner");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto mine = my_part(all_records(4, 1), Deal::kInTurn);
  const auto write = [&](const std::string& name) {
    taper::write_rollouts(scratch / name, MPI_COMM_WORLD, mine, kOptions);
  };
  CHECK_THROWS_AS(write("plain/a.h5"), Error);
  CHECK_THROWS_AS(write("full"), Error);  // a directory
  CHECK_FALSE(std::filesystem::exists(scratch / "full.part"));
}

TEST_CASE("shares are contiguous and equal to within one") {
  const auto all = all_records(5, 3);
  const auto share =
      taper::detail::to_global_order(MPI_COMM_WORLD, my_part(all, Deal::kReversedBlocks), 1);
  CHECK(share.writers == ranks());
  CHECK(share.writer == rank());
  CHECK(share.total_rows == 15);
  CHECK(share.first_row == rank() * 15 / ranks());
  REQUIRE(static_cast<std::int64_t>(share.records.size()) ==
          (rank() + 1) * 15 / ranks() - rank() * 15 / ranks());
  for (std::size_t i = 0; i < share.records.size(); ++i) {
    CHECK(share.records[i] == all[static_cast<std::size_t>(share.first_row) + i]);
  }
}

TEST_CASE("writers are as many as the bytes need, spread over the ranks") {
  const auto mine = my_part(all_records(5, 3), Deal::kInTurn);
  const auto share_at = [&](std::int64_t bytes) {
    return taper::detail::to_global_order(MPI_COMM_WORLD, mine, bytes);
  };
  CHECK(share_at(1'000'000'000).writers == 1);
  CHECK(share_at(1).writers == ranks());
  std::int64_t bytes = 64;
  auto share = share_at(bytes);
  while (share.writers > 2) share = share_at(bytes += bytes / 4);
  REQUIRE(share.writers == std::min(2, ranks()));
  if (ranks() == 4)
    CHECK(share.writer == std::vector<int>{0, -1, 1, -1}[static_cast<std::size_t>(rank())]);
  if (share.writer < 0) CHECK(share.records.empty());
}

TEST_CASE("other files are refused as rollouts") {
  const Scratch scratch;
  if (rank() == 0) {
    { auto file = taper::Hdf5File::create(scratch / "a.h5"); }
    CHECK_THROWS_MATCHES(taper::read_rollouts(scratch / "a.h5"), Error,
                         MessageMatches(ContainsSubstring("not a file of format taper-rollouts")));
  }
}
