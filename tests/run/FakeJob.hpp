// SPDX-License-Identifier: Apache-2.0
//
// A job that does nothing but count, on the weights of a golden model: for tests of what all jobs
// do alike.
#pragma once

#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "results/MetricsLog.hpp"
#include "run/Job.hpp"
#include "session/SharedArena.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

namespace taper::test {

enum class StopPlace { kBehind, kWithin };

struct FakeRun {
  RunSetup setup;
  std::int64_t iterations = 4;
  std::map<std::int64_t, double> scores = {};  // held-out figures after iterations
  std::int64_t fails_in = 0;                   // iteration; 0: none
  std::int64_t asked_in = 0;                   // where the last rank gets SIGTERM; 0: nowhere
  StopPlace stops = StopPlace::kBehind;        // after that iteration, or before it counts
};

// Its state is the sum of its iterations.
class FakeJob final : public Job {
 public:
  FakeJob(const FakeRun& run, const Ranks& ranks)
      : Job(run.setup, ranks, &request_),
        run_(run),
        files_(TAPER_GOLDEN_DIR "/models/llama_a", "Model/Directory"),
        model_(files_, ranks, options()) {
    model_.add_memory(plan_);
  }

  const MemoryPlan& memory_plan() const override { return plan_; }

 private:
  static TrainingModelOptions options() {
    TrainingModelOptions o;
    o.type = WeightType::kF32;
    o.pass.max_rows = 32;
    o.pass.max_sequences = 4;
    return o;
  }

  const ModelFiles& files() const override { return files_; }
  TrainingModel* trained_model() override { return &model_; }
  std::string memory_advice() const override { return "buy more"; }
  void require_inputs(const RunStart&) const override { files_.open_weights(); }
  void require_state(const std::filesystem::path&, const StateInfo& state) const override {
    TAPER_VALIDATE(state.examples, "the sum is missing");
  }
  void create() override {
    arena_ = make_arena(ranks(), plan_);
    model_.create(*arena_, files_.rope_table(32));
  }
  void load_start() override { model_.load_masters(); }
  void set_state(const StateInfo& state, const std::filesystem::path&) override {
    sum_ = static_cast<std::int64_t>(state.examples->next);
  }
  void add_state(StateInfo& state) const override {
    state.examples = {"fake", static_cast<std::uint64_t>(sum_), 0};
  }
  std::int64_t planned_iterations() const override { return run_.iterations; }

  IterationEnd iterate(std::int64_t iteration) override {
    TAPER_VALIDATE(iteration != run_.fails_in, "a failure on purpose");
    if (iteration == run_.asked_in && ranks().rank() == ranks().size() - 1) std::raise(SIGTERM);
    if (iteration == run_.asked_in && run_.stops == StopPlace::kWithin && stop().reached())
      return IterationEnd::kStopped;
    sum_ += iteration;
    MetricValues metrics{{"train/loss", static_cast<double>(sum_)}};
    bool is_due = is_checkpoint_due(iteration);
    const auto score = run_.scores.find(iteration);
    if (score != run_.scores.end()) {
      metrics.emplace_back("val/score/mean", score->second);
      is_due = note_evaluation(iteration, metrics) || is_due;
    }
    conclude(iteration, is_due, [&] {
      if (log()) log()->add_values(iteration, metrics);
    });
    if (score != run_.scores.end()) keep_best();
    return IterationEnd::kFinished;
  }
  IterationEnd finish() override {
    save_unsaved();
    return IterationEnd::kFinished;
  }
  void report_completed() const override { TAPER_INFO("completed, with the sum " << sum_); }

  StopRequest request_;
  FakeRun run_;
  ModelFiles files_;
  TrainingModel model_;
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_;
  std::int64_t sum_ = 0;
};

// Fake runs below a scratch folder.
struct FakeRuns : TestRanks {
  // Four iterations, the last of which has a checkpoint.
  FakeRun fake(const std::string& name) const {
    FakeRun fake;
    fake.setup.directory = scratch / name;
    fake.setup.unit = "iteration";
    fake.setup.checkpoints = {0, 4};
    fake.setup.keep = 8;
    return fake;
  }

  // The sums in the metrics of a run.
  static std::vector<double> sums(const FakeRun& fake) {
    std::vector<double> found;
    for (const auto& record : read_metrics_log(fake.setup.directory.metrics()))
      found.push_back(value_of(record.values, "train/loss"));
    return found;
  }

  template <class Action>
  void on_rank_0(const Action& action) const {
    barrier(ranks.world());
    if (ranks.rank() == 0) action();
    barrier(ranks.world());
  }

  Scratch scratch;
};

}  // namespace taper::test
