// SPDX-License-Identifier: Apache-2.0
#include "tune/SftJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "comm/Collectives.hpp"
#include "io/Json.hpp"
#include "results/MetricTable.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "tune/TuningRuns.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinRel;
namespace fs = std::filesystem;

namespace {

const std::string kGolden = TAPER_GOLDEN_DIR "/sft";

// The settings of the golden run.
SftOptions golden_run(const Json& settings, const std::string& output) {
  SftOptions o;
  o.model.directory = TAPER_GOLDEN_DIR "/models/llama_a";
  o.data.files = {kGolden + "/train.jsonl"};
  o.data.validation_files = {kGolden + "/held_out.jsonl"};
  o.data.shuffle = false;
  o.batch_tokens = settings["batch_tokens"];
  apply_golden_settings(o, settings);
  o.output = output;
  return o;
}

struct Fixture : TestRanks {
  explicit Fixture(const std::vector<int>& degrees = {}) : TestRanks(degrees) {}

  SftOptions options(const std::string& name) const {
    return golden_run(golden["settings"], (scratch / name).string());
  }
  ExitCode run(const SftOptions& o, const std::string& resume = "none") const {
    return run_job<SftJob>(o, ranks, resume);
  }

  Scratch scratch;
  Json golden = read_json_file(kGolden + "/golden.json");
};

}  // namespace

TEST_CASE("losses, gradients and rates are those of PyTorch, step by step") {
  Fixture f;
  const std::size_t steps = f.golden["losses"].size();
  std::vector<double> held_out;
  for (const int tp : {1, world_size()}) {
    SftOptions o = f.options("tp" + std::to_string(tp));
    o.training.tp = tp;
    REQUIRE(f.run(o) == ExitCode::kDone);
    const Series series = metrics_of(o);
    REQUIRE(series.size() == steps + 1);
    CHECK_THAT(series[0].at("val/loss"), WithinRel(f.golden["held_out"][0].get<double>(), 2e-6));
    for (std::size_t i = 0; i < steps; ++i) {
      const auto& step = series[i + 1];
      INFO("step " << i + 1);
      CHECK_THAT(step.at("train/loss"), WithinRel(f.golden["losses"][i].get<double>(), 2e-5));
      CHECK_THAT(step.at("train/grad_norm"),
                 WithinRel(f.golden["grad_norms"][i].get<double>(), 2e-5));
      CHECK_THAT(step.at("train/lr"), WithinRel(f.golden["rates"][i].get<double>(), 1e-12));
      CHECK_THAT(step.at("val/loss"), WithinRel(f.golden["held_out"][i + 1].get<double>(), 2e-5));
      CHECK(step.at("train/examples") == f.golden["examples"][i].get<double>());
      for (const auto& [name, value] : step) CHECK(meaning_of("/metrics/" + name) != nullptr);
    }
    CHECK(series.back().at("train/epoch") == 3.0);
    held_out.push_back(series[0].at("val/loss"));
  }
  for (const double loss : held_out) CHECK(loss == held_out.front());  // whatever the layout
}

TEST_CASE("a resumed fine-tuning has the bits of a straight one") {
  Fixture f;
  SftOptions straight = f.options("straight");
  straight.data.shuffle = true;
  straight.checkpoint = {4, 100};
  f.run(straight);
  SftOptions parts = straight;
  parts.output = (f.scratch / "parts").string();
  f.run(parts);
  kill_behind(4, parts, f.ranks);
  f.run(parts, "auto");
  CHECK(slurp(fs::path(parts.output) / "model.safetensors") ==
        slurp(fs::path(straight.output) / "model.safetensors"));
  CHECK(metrics_of(parts) == metrics_of(straight));
  // A finished run repeats what is after its last checkpoint.
  f.run(parts, "auto");
  CHECK(metrics_of(parts) == metrics_of(straight));

  SftOptions other = parts;
  other.data.files.push_back(kGolden + "/held_out.jsonl");
  CHECK_THROWS_MATCHES(
      f.run(other, "auto"), Error,
      MessageMatches(ContainsSubstring("other examples") && ContainsSubstring("--resume none")));
  other = parts;
  other.seed = 99;
  CHECK_THROWS_MATCHES(f.run(other, "auto"), Error, MessageMatches(ContainsSubstring("Run/Seed")));
}

TEST_CASE("micro-batches do not change the loss, and a stop saves the state") {
  Fixture f;
  SftOptions small = f.options("small"), large = f.options("large");
  large.training.max_tokens = 256;  // which changes what is too long, too, but nothing is
  f.run(small);
  f.run(large);
  const Series a = metrics_of(small), b = metrics_of(large);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 1; i < a.size(); ++i)
    CHECK_THAT(a[i].at("train/loss"), WithinRel(b[i].at("train/loss"), 1e-5));

  SftOptions stopped = f.options("stopped");
  StopRequest stop;
  stop.set_deadline(0.0);
  const ExitCode code = SftJob(stopped, f.ranks, {"", &stop}).run();
  barrier(f.ranks.world());
  CHECK(code == ExitCode::kStoppedEarly);
  CHECK(!fs::exists(stopped.output));
  CHECK_THAT(slurp(stopped.run_path() + "/status.json"), ContainsSubstring("\"stopped\""));
}

TEST_CASE("a run that begins with another one's checkpoint has it as its own from the start") {
  Fixture f;
  SftOptions first = f.options("first");
  first.checkpoint = {4, 100};
  f.run(first);
  SftOptions second = first;
  second.output = (f.scratch / "second").string();
  StopRequest stop;
  stop.set_deadline(0.0);
  const ResumePoint from =
      find_resume_point(f.ranks, first.run_path() + "/checkpoints/iter_000004", second.run_path());
  CHECK(SftJob(second, f.ranks, {"", &stop}).run(from) == ExitCode::kStoppedEarly);
  barrier(f.ranks.world());
  if (f.ranks.rank() == 0) fs::remove_all(fs::path(first.run_path()));
  barrier(f.ranks.world());
  CHECK(f.run(second, "auto") == ExitCode::kDone);
  CHECK(slurp(fs::path(second.output) / "model.safetensors") ==
        slurp(fs::path(first.output) / "model.safetensors"));
}
