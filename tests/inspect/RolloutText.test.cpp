// SPDX-License-Identifier: Apache-2.0
#include "inspect/RolloutText.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "inspect/SmallRun.hpp"
#include "support/Messages.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

// Of the prompt the special tokens are shown, of the response not.
const std::string kFirst =
    "--- prompt 0, sample 0: score 1, advantage 0.5, end of sequence, 3 + 2 tokens\n"
    "[prompt]\n<|bos|>1+\n[response]\n2\n";
const std::string kSecond =
    "--- prompt 0, sample 1: score none, advantage 0, length limit, 3 + 3 tokens\n"
    "[prompt]\n<|bos|>1+\n[response]\n345\n";

std::string head(const fs::path& file) {
  return file.string() + ": iteration 2, 2 samples\n";
}

}  // namespace

TEST_CASE("so many samples as are wanted, and there, are shown with their figures") {
  const SmallRun run;
  CHECK(rollout_text(run.rollouts, 1, "") == head(run.rollouts) + kFirst);
  CHECK(rollout_text(run.rollouts, 9, "") == head(run.rollouts) + kFirst + kSecond);
}

TEST_CASE("of a run the newest file is shown, by its model or a named one") {
  const SmallRun run;
  write_rollouts(run.directory / "rollouts/iter_000001.h5", MPI_COMM_SELF, small_samples(),
                 {.iteration = 1, .reward_names = {"score"}});
  CHECK(rollout_text(run.directory, 1, "") == head(run.rollouts) + kFirst);
  fs::remove(run.run_file);
  CHECK_THAT(message_of([&] { rollout_text(run.directory, 1, ""); }),
             ContainsSubstring("run.h5 does not exist") && ContainsSubstring("--model DIR"));
  CHECK(rollout_text(run.directory, 1, TAPER_DATA_DIR "/model") == head(run.rollouts) + kFirst);
  CHECK_THAT(
      message_of([&] { rollout_text(run.directory, 1, TAPER_GOLDEN_DIR "/models/llama_a"); }),
      ContainsSubstring("has no tokenizer.json"));
}

TEST_CASE("what has no rollouts, or damaged ones, is refused") {
  const SmallRun run;
  CHECK_THAT(message_of([&] { rollout_text(run.directory / "none", 1, ""); }),
             ContainsSubstring("none does not exist"));
  CHECK_THAT(message_of([&] { rollout_text(run.checkpoint, 1, ""); }),
             ContainsSubstring("iter_000002 has no rollouts/*.h5"));
  CHECK(read_rollouts_checked(run.rollouts).records.size() == 2);
  fs::resize_file(run.rollouts, fs::file_size(run.rollouts) / 2);
  CHECK_THAT(message_of([&] { read_rollouts_checked(run.rollouts); }),
             ContainsSubstring("iter_000002.h5 is damaged or not a rollout file"));
  CHECK_THAT(message_of([&] { read_rollouts_checked(run.run_file); }),
             ContainsSubstring("run.h5 is damaged or not a rollout file"));
}
