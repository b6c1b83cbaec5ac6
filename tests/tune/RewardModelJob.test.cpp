// SPDX-License-Identifier: Apache-2.0
#include "tune/RewardModelJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "comm/Collectives.hpp"
#include "io/Json.hpp"
#include "results/MetricTable.hpp"
#include "support/RewardDirectory.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "tune/TuningRuns.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
namespace fs = std::filesystem;

namespace {

const std::string kGolden = TAPER_GOLDEN_DIR "/reward_model";
const std::string kLanguageModel = TAPER_GOLDEN_DIR "/models/llama_a";

struct Fixture : TestRanks {
  explicit Fixture(const std::vector<int>& degrees = {}) : TestRanks(degrees) {
    if (ranks.rank() == 0)
      write_reward_model(kLanguageModel, golden["score"].get<std::vector<float>>(),
                         scratch / "start");
    barrier(ranks.world());
  }

  // The settings of the golden run.
  RewardModelOptions options(const std::string& name) const {
    const Json& settings = golden["settings"];
    RewardModelOptions o;
    o.model.directory = (scratch / "start").string();
    o.data.files = {kGolden + "/train.jsonl"};
    o.data.validation_files = {kGolden + "/held_out.jsonl"};
    o.data.shuffle = false;
    o.batch_pairs = settings["batch_pairs"];
    o.center_rewards = settings["center_rewards"];
    apply_golden_settings(o, settings);
    o.output = (scratch / name).string();
    return o;
  }
  ExitCode run(const RewardModelOptions& o, const std::string& resume = "none") const {
    return run_job<RewardModelJob>(o, ranks, resume);
  }
  // What a job on these pairs says before it begins.
  std::string error(const std::string& pairs, int max_tokens = 64) const {
    if (ranks.rank() == 0) spill(scratch / "bad.jsonl", pairs);
    barrier(ranks.world());
    RewardModelOptions o = options("bad");
    o.data.files = {(scratch / "bad.jsonl").string()};
    o.data.over_long = OverLong::kStop;
    o.training.max_tokens = max_tokens;
    std::string text;
    try {
      RewardModelJob(o, ranks);
    } catch (const Error& e) {
      text = e.what();
    }
    barrier(ranks.world());  // all have read the file
    return text;
  }

  Scratch scratch;
  Json golden = read_json_file(kGolden + "/golden.json");
};

}  // namespace

TEST_CASE("losses, rewards and gradients are those of PyTorch, step by step") {
  Fixture f;
  const std::size_t steps = f.golden["loss"].size();
  REQUIRE(steps >= 10);
  std::vector<Series> runs;
  for (const int tp : {1, world_size()}) {
    RewardModelOptions o = f.options("tp" + std::to_string(tp));
    o.training.tp = tp;
    REQUIRE(f.run(o) == ExitCode::kDone);
    const Series& series = runs.emplace_back(metrics_of(o));
    REQUIRE(series.size() == steps + 1);
    for (std::size_t i = 0; i <= steps; ++i) {
      INFO("step " << i);
      const auto near = [&](const char* name, const char* golden, std::size_t at) {
        CHECK_THAT(series[i].at(name), WithinAbs(f.golden[golden][at].get<double>(), 1e-4));
      };
      near("val/loss", "held_out_loss", i);
      near("val/accuracy", "held_out_accuracy", i);
      for (const auto& [name, value] : series[i]) CHECK(meaning_of("/metrics/" + name) != nullptr);
      if (i == 0) continue;
      near("train/loss", "loss", i - 1);
      near("train/accuracy", "accuracy", i - 1);
      near("train/reward_chosen", "reward_chosen", i - 1);
      near("train/reward_rejected", "reward_rejected", i - 1);
      CHECK_THAT(series[i].at("train/grad_norm"),
                 WithinRel(f.golden["grad_norm"][i - 1].get<double>(), 1e-4));
      CHECK_THAT(series[i].at("train/lr"), WithinRel(f.golden["rate"][i - 1].get<double>(), 1e-12));
      CHECK(series[i].at("train/pairs") == f.golden["pairs"][i - 1].get<double>());
    }
  }
  // Values do not depend on the layout: what is measured before a step has been made is equal.
  for (const Series& s : runs) {
    CHECK(s[0] == runs[0][0]);
    for (const char* name : {"train/loss", "train/reward_chosen", "train/reward_rejected"})
      CHECK(s[1].at(name) == runs[0][1].at(name));
  }
}

TEST_CASE("how pairs are cut into micro-batches does not change their rewards") {
  Fixture f;
  RewardModelOptions small = f.options("small"), large = f.options("large");
  large.training.max_tokens = 512;
  f.run(small);
  f.run(large);
  const Series a = metrics_of(small), b = metrics_of(large);
  REQUIRE(a.size() == b.size());
  CHECK(a[0] == b[0]);
  CHECK(a[1].at("train/loss") == b[1].at("train/loss"));
  for (std::size_t i = 1; i < a.size(); ++i)
    CHECK_THAT(a[i].at("train/loss"), WithinRel(b[i].at("train/loss"), 1e-4));
}

TEST_CASE("a resumed run has the bits of a straight one") {
  Fixture f;
  RewardModelOptions straight = f.options("straight");
  straight.data.shuffle = true;
  straight.checkpoint = {4, 100};
  straight.validate_every = 3;
  straight.best_by = "val/loss";
  f.run(straight);
  RewardModelOptions parts = straight;
  parts.output = (f.scratch / "parts").string();
  f.run(parts);
  kill_behind(8, parts, f.ranks);
  f.run(parts, "auto");
  CHECK(slurp(fs::path(parts.output) / "model.safetensors") ==
        slurp(fs::path(straight.output) / "model.safetensors"));
  CHECK(metrics_of(parts) == metrics_of(straight));
  const std::string best = slurp(fs::path(parts.run_path()) / "best.json");
  CHECK(best == slurp(fs::path(straight.run_path()) / "best.json"));
  const Json told = parse_json(best, "best.json");
  double lowest = 1e9, at = -1;
  const Series series = metrics_of(parts);
  for (std::size_t i = 0; i < series.size(); ++i)
    if (series[i].contains("val/loss") && series[i].at("val/loss") < lowest) {
      lowest = series[i].at("val/loss");
      at = static_cast<double>(i);
    }
  CHECK(told["iteration"] == at);
  CHECK_THAT(told["value"].get<double>(), WithinRel(-lowest, 1e-8));
  CHECK(fs::exists(fs::path(parts.run_path()) / told["checkpoint"].get<std::string>()));

  RewardModelOptions stopped = f.options("stopped");
  StopRequest stop;
  stop.set_deadline(0.0);
  CHECK(RewardModelJob(stopped, f.ranks, {"", &stop}).run() == ExitCode::kStoppedEarly);
  barrier(f.ranks.world());
  CHECK(!fs::exists(stopped.output));
}

TEST_CASE("a language model gets a small head of the seed, and what is saved is a reward model") {
  Fixture f;
  std::vector<std::string> weights;
  for (const std::uint64_t seed : {1, 1, 2}) {
    RewardModelOptions o = f.options("fresh");
    o.model.directory = kLanguageModel;
    o.seed = seed;
    o.epochs = 0;
    o.steps = 1;
    o.center_rewards = 0;
    REQUIRE(f.run(o) == ExitCode::kDone);
    // Rewards begin near zero, and the loss with that at a coin toss.
    CHECK_THAT(metrics_of(o)[0].at("val/loss"), WithinAbs(std::log(2.0), 0.3));
    weights.push_back(slurp(fs::path(o.output) / "model.safetensors"));
    const ModelFiles saved(o.output, "it", {OutputHead::kScalar, 0});
    CHECK(!saved.score_seed);
    (void)saved.open_weights();
    CHECK_THROWS_MATCHES(ModelFiles(o.output, "Model/Directory"), Error,
                         MessageMatches(ContainsSubstring("is a reward model")));
    barrier(f.ranks.world());
  }
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] != weights[2]);
}

TEST_CASE("a pair that cannot be learned is named with file and line") {
  const Fixture f;
  const std::string good =
      R"({"prompt_tokens": [5], "chosen_tokens": [6], "rejected_tokens": [7]})";
  CHECK(f.error(good).empty());
  const auto second = [&](const std::string& line, int max_tokens = 64) {
    return f.error(good + "\n" + line + "\n", max_tokens);
  };
  const std::string longer =
      R"({"prompt_tokens": [5, 5, 5, 5, 5, 5], "chosen_tokens": [6], "rejected_tokens": [7]})";
  CHECK(second(longer).empty());
  const std::string problem = second(longer, 13);
  CHECK_THAT(problem, ContainsSubstring("bad.jsonl:2") && ContainsSubstring("14 tokens (13") &&
                          ContainsSubstring("Training/Max Tokens"));
  std::string prompt = "5";
  for (int i = 0; i < 300; ++i) prompt += ", 5";  // the context has 256
  CHECK_THAT(second(R"({"prompt_tokens": [)" + prompt +
                        R"(], "chosen_tokens": [6], "rejected_tokens": [7]})",
                    1000),
             ContainsSubstring("bad.jsonl:2") && ContainsSubstring("302 tokens (256 at most)"));
  CHECK_THAT(second(R"({"prompt_tokens": [5], "chosen_tokens": [6], "rejected_tokens": [999]})"),
             ContainsSubstring("bad.jsonl:2"));
  CHECK_THAT(second(R"({"prompt_tokens": [5], "chosen_tokens": [6]})"),
             ContainsSubstring("bad.jsonl:2"));
}
