// SPDX-License-Identifier: Apache-2.0
#include "profile/PassProbe.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "base/Log.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "instance/ModelOptions.hpp"
#include "instance/TrainingModel.hpp"
#include "optim/OptimizerStep.hpp"
#include "session/MemoryCheck.hpp"
#include "session/RankBlocks.hpp"
#include "session/SharedArena.hpp"

namespace taper {
namespace {

constexpr int kLeastRepeats = 3, kMostRepeats = 9;
constexpr double kEnoughSeconds = 0.5;  // of repeats of a sample beyond the least
constexpr int kShortLength = 64;        // tokens of a sequence

// A micro-batch of equally long sequences.
struct PassShape {
  int rows = 0, length = 0;
  friend bool operator==(const PassShape&, const PassShape&) = default;
};

std::vector<PassShape> shapes_of(const PassProbeOptions& o, const ModelFiles& files) {
  const int longest = std::min({o.long_length, o.max_rows, files.config.max_positions});
  const int shortest = std::min(kShortLength, longest);
  std::vector<PassShape> shapes;
  const auto add = [&](int rows, int length) {
    const PassShape shape{rows / length * length, length};
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  };
  for (const int length : {shortest, longest})
    for (int rows = length; rows <= o.max_rows; rows *= 4) add(rows, length);
  add(o.max_rows, longest);
  return shapes;
}

// Of the blocks of `size` ranks, which work at the same time: what counts is the slowest one.
PairClass class_of(const Ranks& ranks, int size) {
  const std::vector<int> nodes = ranks.hosts.node_of_rank();
  for (int first = 0; first < ranks.size(); first += size)
    if (pair_class(first, size, nodes) == PairClass::kOtherNode) return PairClass::kOtherNode;
  return PairClass::kSameNode;
}

// A model that learns on a block of ranks.
class LearningModel {
 public:
  LearningModel(const PassProbeOptions& options, ModelFiles& files, const Ranks& world,
                const Ranks& block, int tp)
      : world_(world), block_(block), ids_(files.valid_ids()) {
    PassOptions pass;
    pass.max_tokens = options.max_rows;
    pass_options_ = pass.train_pass(precision(block.exec));
    pass_options_.owner.phase = plan_.phase("passes");
    AdamWOptions adamw;
    adamw.gradients = pass_options_.gradients;
    model_ = std::make_unique<TrainingModel>(
        files, block, TrainingModelOptions{options.type, tp, tp, pass_options_, adamw});
    model_->add_memory(plan_);
    lack_ = memory_problem(world, plan_, "leave --passes out");
    if (!lack_.empty()) return;
    arena_ = make_arena(block, plan_);
    model_->create(*arena_,
                   files.rope_table(std::min(options.max_rows, files.config.max_positions)));
    model_->draw_masters(0);
    model_->gradients().clear(block.exec);
  }

  // Why it does not fit in memory; empty: it does.
  const std::string& lack() const { return lack_; }

  PassSample time_pass(PassKind kind, const PassShape& shape, bool with_targets) {
    PackedSequences sequences;
    for (int row = 0; row < shape.rows; ++row) sequences.ids.push_back(row * 7 % ids_);
    sequences.lengths.assign(static_cast<std::size_t>(shape.rows / shape.length), shape.length);
    std::vector<int> rows(with_targets ? static_cast<std::size_t>(shape.rows) : 0);
    std::iota(rows.begin(), rows.end(), 0);
    const std::vector<std::int32_t> targets(rows.size(), 1);
    std::vector<float> log_probs(rows.size());
    const HeadOptions head{ids_, 1.0f};
    const Exec& exec = block_.exec;
    const ModelView& view = model_->train_view();
    const ModelParallel& parallel = model_->train_parallel();
    const auto pass = [&] {
      model_->pass().forward(exec, view, parallel, sequences);
      if (kind == PassKind::kLearn)
        model_->pass().backward(
            exec, view, parallel, rows, targets, head,
            [](std::size_t, float, float) {
              return TokenSlope{1e-6f, 0.0f};
            },
            model_->gradients());
      else if (with_targets)
        model_->pass().log_probs(exec, view, parallel, rows, targets, head, log_probs, {});
      exec.fence();
    };
    PassSample sample = timed(pass);
    sample.kind = kind;
    sample.pair = class_of(world_, sample.tp);
    sample.rows = shape.rows;
    sample.targets = static_cast<int>(rows.size());
    sample.length = shape.length;
    return sample;
  }

  PassSample time_update() {
    PassSample sample = timed([&] {
      make_step(block_.exec, model_->optimizer(), model_->gradients(), ScheduleOptions(),
                [&] { model_->publish(); });
      block_.exec.fence();
    });
    sample.kind = PassKind::kUpdate;
    sample.pair = class_of(world_, block_.size());
    sample.replicas = model_->layout().dp;
    return sample;
  }

 private:
  // The slowest rank's time, which all ranks know: they decide alike when it is enough.
  PassSample timed(const std::function<void()>& work) {
    std::vector<std::int64_t> times;
    double spent = 0;
    for (int i = 0; i <= kMostRepeats && (i <= kLeastRepeats || spent < kEnoughSeconds); ++i) {
      barrier(world_.world());
      const Timer timer;
      work();
      std::vector<std::int64_t> ns{timer.nanoseconds()};
      all_reduce_max(world_.world(), ns);
      if (i == 0) continue;  // memory is touched, buffers get their size
      times.push_back(std::max<std::int64_t>(1, ns.front()));
      spent += static_cast<double>(times.back()) * 1e-9;
    }
    std::sort(times.begin(), times.end());
    PassSample sample;
    sample.tp = model_->layout().tp;
    sample.time_ns = times[times.size() / 2];
    sample.spread_ns = times[times.size() * 3 / 4] - times[times.size() / 4];
    sample.repeats = static_cast<std::int32_t>(times.size());
    return sample;
  }

  const Ranks& world_;
  const Ranks& block_;
  int ids_;
  MemoryPlan plan_;
  std::string lack_;
  TrainPassOptions pass_options_;
  std::unique_ptr<TrainingModel> model_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace

std::vector<PassSample> measure_passes(const PassProbeOptions& options, ModelFiles& files,
                                       const Ranks& ranks, const std::vector<int>& degrees) {
  const std::vector<int>& sizes = ranks.chain.degrees();
  std::vector<int> blocks = sizes;
  std::erase(blocks, ranks.size());
  const RankBlocks places(ranks, blocks);
  std::vector<PassSample> samples;
  for (const int tp : degrees)
    for (const int size : sizes) {
      if (size % tp != 0) continue;
      const Ranks& block = *places.find({ranks.rank() / size * size, size});
      if (ranks.rank() == 0)
        TAPER_INFO("profile: passes and steps at TP " << tp << " on blocks of "
                                                      << count_text(size, "rank"));
      LearningModel model(options, files, ranks, block, tp);
      if (!model.lack().empty()) {
        if (ranks.rank() == 0)
          TAPER_WARN("profile: no passes at TP "
                     << tp << " on blocks of " << count_text(size, "rank") << ": " << model.lack());
        continue;
      }
      if (size == tp)
        for (const PassShape& shape : shapes_of(options, files))
          for (const bool with_targets : {false, true})
            for (const PassKind kind : {PassKind::kForward, PassKind::kLearn})
              samples.push_back(model.time_pass(kind, shape, with_targets));
      samples.push_back(model.time_update());
    }
  return samples;
}

}  // namespace taper
