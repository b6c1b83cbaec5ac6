// SPDX-License-Identifier: Apache-2.0
//
// What fine-tuning jobs of all kinds do, with one of them.
#include "tune/TuningJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"
#include "tune/SftJob.hpp"
#include "tune/TuningRuns.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinRel;
namespace fs = std::filesystem;

namespace {

const std::string kGolden = TAPER_GOLDEN_DIR "/sft";

struct Fixture : TestRanks {
  SftOptions options(const std::string& name) const {
    SftOptions o;
    o.model.directory = TAPER_GOLDEN_DIR "/models/llama_a";
    o.model.type = WeightType::kF32;
    o.data.files = {kGolden + "/train.jsonl"};
    o.data.validation_files = {kGolden + "/held_out.jsonl"};
    o.batch_tokens = 64;
    o.training.max_tokens = 64;
    o.schedule.peak = 1e-3;
    o.steps = 7;
    o.validate_every = 3;
    o.best_by = "val/loss";
    o.checkpoint = {2, 8};
    o.output = (scratch / name).string();
    return o;
  }
  ExitCode run(const SftOptions& o, const std::string& resume = "none") const {
    return run_job<SftJob>(o, ranks, resume);
  }
  static std::string best(const SftOptions& o) {
    return slurp(fs::path(o.run_path()) / "best.json");
  }

  Scratch scratch;
};

// Another command, on the examples of `taper sft`.
class OtherJob final : public TuningJob {
 public:
  OtherJob(const SftOptions& options, const Ranks& ranks)
      : TuningJob(options, ranks, {}, {}, 1), source_(options, files(), pass_options().max_rows) {}

 private:
  const char* command() const override { return "other"; }
  std::uint64_t fingerprint() const override { return source_.fingerprint(); }
  std::int64_t steps_left(std::uint64_t, std::int64_t) const override { return 0; }
  StepFigures accumulate(std::uint64_t&) override { return {}; }
  bool has_validation() const override { return false; }
  MetricValues validate() override { return {}; }
  std::string train_text(const ValueOf&) const override { return ""; }
  std::string held_out_text(const ValueOf&) const override { return ""; }
  std::string examples_text() const override { return ""; }

  SftSource source_;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a checkpoint of another command is refused") {
  SftOptions o = options("model");
  o.best_by.clear();
  run(o);
  const auto examine = [&](const Job& job) {
    job.examine(find_resume_point(ranks, "auto", o.run_path()), CheckpointCheck::kHead);
  };
  CHECK_NOTHROW(examine(SftJob(o, ranks)));
  CHECK_THROWS_MATCHES(examine(OtherJob(o, ranks)), Error,
                       MessageMatches(ContainsSubstring("was not made by taper other")));
}

TEST_CASE_METHOD(Fixture,
                 "held-out figures come before the first step, on the way and at the end") {
  const SftOptions o = options("model");
  CHECK(run(o) == ExitCode::kDone);
  const Series series = metrics_of(o);
  REQUIRE(series.size() == 8);
  for (std::size_t step = 0; step < series.size(); ++step) {
    INFO("step " << step);
    CHECK(series[step].contains("val/loss") == (step % 3 == 0 || step == 7));
    CHECK(series[step].contains("train/loss") == (step > 0));
  }
}

TEST_CASE_METHOD(Fixture,
                 "what best.json lacks of the steps before a checkpoint is in the metrics") {
  const SftOptions straight = options("straight"), parts = options("parts");
  run(straight);
  const Json told = parse_json(best(straight), "best.json");
  CHECK_THAT(
      -told["value"].get<double>(),
      WithinRel(metrics_of(straight)[told["iteration"].get<std::size_t>()].at("val/loss"), 1e-8));
  run(parts);
  kill_behind(6, parts, ranks);
  if (ranks.rank() == 0) fs::remove(fs::path(parts.run_path()) / "best.json");
  barrier(ranks.world());
  CHECK(run(parts, "auto") == ExitCode::kDone);
  CHECK(metrics_of(parts) == metrics_of(straight));
  CHECK(best(parts) == best(straight));
}

TEST_CASE_METHOD(Fixture, "a job says where it would start") {
  SftOptions o = options("model");
  o.checkpoint.every = 4;
  const auto start_text = [&] {
    const SftJob job(o, ranks);
    return job.start_text(
        job.examine(find_resume_point(ranks, "auto", o.run_path()), CheckpointCheck::kHead));
  };
  CHECK(start_text() == "would start from " + o.model.directory);
  o.from_scratch = true;
  CHECK(start_text() == "would start from random weights");
  CHECK(!fs::exists(o.run_path()));
  o.from_scratch = false;
  o.best_by.clear();
  run(o);
  const std::string text = start_text();  // rank 0 has the state
  if (ranks.rank() == 0)
    CHECK(text ==
          "would resume after step 4 (checkpoint " + o.run_path() + "/checkpoints/iter_000004)");
}
