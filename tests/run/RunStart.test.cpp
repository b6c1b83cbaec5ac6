// SPDX-License-Identifier: Apache-2.0
#include "run/RunStart.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "train/TrainJob.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

// A copy of the embedded model, and a run of two short iterations with it.
struct Fixture : TestRanks {
  Fixture() {
    on_rank_0([&] { fs::copy(TAPER_DATA_DIR "/model", scratch / "model"); });
    options.model.directory = (scratch / "model").string();
    options.rollout.prompts = 2;
    options.rollout.samples = 2;
    options.rollout.max_new_tokens = 8;
    options.rollout.kv_memory_mb = 16;
    options.training.iterations = 2;
    options.training.max_tokens = 256;
    options.checkpoint.every = 1;
    options.output = (scratch / "run").string();
  }

  template <class Action>
  void on_rank_0(const Action& action) {
    if (ranks.rank() == 0) action();
    barrier(ranks.world());
  }
  void train() {
    TrainJob(options, "config", ranks, StopRequest())
        .run(find_resume_point(ranks, "auto", options.output));
    barrier(ranks.world());  // rank 0 writes last
  }
  RunStart examine(const std::string& resume = "auto",
                   CheckpointCheck check = CheckpointCheck::kContents) {
    return TrainJob(options, "config", ranks, StopRequest())
        .examine(find_resume_point(ranks, resume, options.output), check);
  }
  void refuses(const std::string& word, const std::string& resume = "auto") {
    CHECK_THROWS_MATCHES(examine(resume), Error, MessageMatches(ContainsSubstring(word)));
  }
  fs::path checkpoint(int iteration) const {
    return scratch / "run" / "checkpoints" / ("iter_00000" + std::to_string(iteration));
  }

  Scratch scratch;
  RunOptions options;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a run without checkpoints begins afresh, and looking leaves nothing") {
  CHECK(examine().is_afresh());
  CHECK_FALSE(fs::exists(options.output));
  refuses("--resume ", (scratch / "nowhere").string());
}

TEST_CASE_METHOD(Fixture, "a run begins at the newest checkpoint that is whole") {
  train();
  const RunStart newest = examine();
  CHECK(newest.checkpoint == checkpoint(2));
  if (ranks.rank() == 0) CHECK(newest.state.iteration == 2);
  CHECK(examine("none").is_afresh());
  CHECK(examine(checkpoint(1).string()).checkpoint == checkpoint(1));

  options.seed = 2;
  refuses("Run/Seed 1 (this run has 2)");
  refuses("Run/Seed 1 (this run has 2)", checkpoint(1).string());
  options.seed = 1;

  // As a kill leaves it that came while it was being replaced.
  on_rank_0([&] { fs::rename(checkpoint(2), checkpoint(2).string() + ".old"); });
  CHECK(examine().checkpoint == checkpoint(2).string() + ".old");
  options.output = (scratch / "other").string();  // of a run that is not its own it loads what is
  CHECK(examine((scratch / "run").string()).checkpoint == checkpoint(1));
  options.output = (scratch / "run").string();
  on_rank_0([&] {
    fs::rename(checkpoint(2).string() + ".old", checkpoint(2));
    const fs::path weights = checkpoint(2) / "model.safetensors";
    std::string bytes = slurp(weights);
    bytes.back() ^= 1;
    spill(weights, bytes);
  });
  CHECK(examine("auto", CheckpointCheck::kHead).checkpoint == checkpoint(2));
  CHECK(examine().checkpoint == checkpoint(1));
  refuses("is damaged", checkpoint(2).string());
  on_rank_0([&] { fs::remove(checkpoint(1) / "state.h5"); });
  refuses("no checkpoint in");
}

TEST_CASE_METHOD(Fixture, "a run that has lost its checkpoints does not start over by itself") {
  train();
  on_rank_0([&] { fs::remove_all(scratch / "run/checkpoints"); });
  refuses("results up to iteration 2 but no checkpoint");
  CHECK_THROWS_AS(train(), Error);
  barrier(ranks.world());
  CHECK(fs::exists(scratch / "run/rollouts/iter_000002.h5"));
  CHECK(examine("none").is_afresh());
  options.checkpoint.every = 3;  // not one yet
  options.training.iterations = 3;
  CHECK(examine().is_afresh());
}

TEST_CASE("a start is told with where it is") {
  CHECK(start_text({}, "afresh", "iteration", "") == "would start afresh");
  RunStart start;
  start.checkpoint = "out/checkpoints/iter_000003";
  start.state.iteration = 3;
  const std::string there = "after iteration 3 (checkpoint out/checkpoints/iter_000003)";
  CHECK(start_text(start, "afresh", "iteration", "") == "would resume " + there);
  CHECK(start_text(start, "afresh", "step", "") ==
        "would resume after step 3 (checkpoint out/checkpoints/iter_000003)");
  CHECK(start_text(start, "afresh", "iteration", "why") ==
        "would find nothing to do " + there + ": why");
}

TEST_CASE_METHOD(Fixture, "weights are needed where a run begins with them") {
  train();
  on_rank_0([&] {
    const fs::path weights = scratch / "model" / "model.safetensors";
    fs::resize_file(weights, fs::file_size(weights) - 2);
  });
  CHECK_FALSE(examine().is_afresh());
  refuses("model.safetensors", "none");
  options.experience.kl.coef = 0.1;  // a reference
  refuses("model.safetensors");
}

TEST_CASE_METHOD(Fixture, "a broken metrics log shows before anything is removed") {
  train();
  on_rank_0([&] { spill(scratch / "run" / "metrics.jsonl", "{\"step\": 1}\nbroken\n"); });
  refuses("metrics.jsonl:2");
  refuses("metrics.jsonl:2", checkpoint(1).string());
  CHECK_THROWS_MATCHES(TrainJob(options, "config", ranks, StopRequest())
                           .run(find_resume_point(ranks, checkpoint(1).string(), options.output)),
                       Error, MessageMatches(ContainsSubstring("metrics.jsonl:2")));
  barrier(ranks.world());
  CHECK(fs::exists(checkpoint(2)));
  CHECK(fs::exists(scratch / "run/rollouts/iter_000002.h5"));
  CHECK(examine("none").is_afresh());             // overwrites it
  options.output = (scratch / "other").string();  // has metrics of its own
  CHECK(examine(checkpoint(1).string()).checkpoint == checkpoint(1));
}

TEST_CASE_METHOD(Fixture, "what a run lacks shows before it writes") {
  options.training.max_tokens = 1 << 26;
  refuses("Training/Max Tokens");
  options.training.max_tokens = 256;
  on_rank_0([&] { fs::remove(scratch / "model" / "tokenizer.json"); });
  refuses("tokenizer.json is missing");
  CHECK_FALSE(fs::exists(options.output));
}
