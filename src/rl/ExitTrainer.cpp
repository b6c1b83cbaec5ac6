// SPDX-License-Identifier: Apache-2.0
#include "rl/ExitTrainer.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "model/Activations.hpp"
#include "optim/OptimizerStep.hpp"

namespace taper {
namespace {

constexpr int kLogitRows = 256, kBatchRows = 256, kPasses = 4;

}  // namespace

std::int64_t ExitTrainer::floats(const ParamTable& head, const ModelParallel& parallel, int exits,
                                 int capacity) {
  return exits * aligned_floats(std::int64_t{capacity} * head.config().hidden) +
         aligned_floats(TokenHead::floats(head, parallel, kLogitRows));
}

ExitTrainer::ExitTrainer(const Exec& exec, const ExitTrainerOptions& options,
                         std::vector<ExitTarget> exits, std::span<const std::int32_t> ids,
                         const Group& world, float* memory)
    : exec_(exec),
      options_(options),
      exits_(std::move(exits)),
      ids_(ids),
      world_(world),
      streams_(memory) {
  TAPER_EXPECT(!exits_.empty());
  const ParamTable& table = exits_.front().view.table();
  float* head_memory = memory + std::ssize(exits_) * aligned_floats(std::int64_t{options.capacity} *
                                                                    table.config().hidden);
  // The heads work one after the other, and are of one shape.
  for (const ExitTarget& exit : exits_)
    heads_.emplace_back(exit.view.table(), exit.parallel, kLogitRows, head_memory);
}

FloatMatrix ExitTrainer::streams(std::size_t exit, std::size_t first, std::size_t rows) const {
  const int h = exits_.front().view.table().config().hidden;
  float* all = streams_ + static_cast<std::int64_t>(exit) *
                              aligned_floats(std::int64_t{options_.capacity} * h);
  return make_matrix(all + static_cast<std::int64_t>(first) * h, static_cast<int>(rows), h);
}

void ExitTrainer::begin(std::int64_t tokens) {
  targets_.clear();
  seen_ = 0;
  stride_ = std::max<std::int64_t>(1, tokens / options_.capacity);
}

void ExitTrainer::collect(const TrainPass& pass, const PackedSamples& packed, const Group& group) {
  const std::size_t first = targets_.size();
  std::vector<std::int32_t> rows;
  sharing_ = group.size();
  for (std::size_t i = 0; i < packed.rows.size() && !is_full(); ++i) {
    const auto at = std::lower_bound(ids_.begin(), ids_.end(), packed.targets[i]);
    if (at == ids_.end() || *at != packed.targets[i]) continue;
    const std::int64_t number = seen_++;
    if (number % stride_ != 0 || number / stride_ % sharing_ != group.rank()) continue;
    rows.push_back(packed.rows[i]);
    targets_.push_back(static_cast<std::int32_t>(at - ids_.begin()));
  }
  if (rows.empty()) return;
  for (std::size_t e = 0; e < exits_.size(); ++e)
    pass.copy_stream(exec_, exits_[e].layers, rows, streams(e, first, rows.size()));
}

DraftReport ExitTrainer::learn() {
  DraftReport report;
  std::vector<std::int64_t> all{std::ssize(targets_)};
  all_reduce_sum(world_, all);
  const auto batches =
      static_cast<int>(std::max<std::int64_t>(1, all.front() / (kBatchRows * world_.size())));
  const int steps = options_.steps > 0 ? options_.steps : kPasses * batches;
  for (int step = 0; step < steps; ++step) {
    std::vector<int> rows;
    for (int i = step % batches; i < std::ssize(targets_); i += batches) rows.push_back(i);
    std::vector<std::int64_t> total{std::ssize(rows)};
    all_reduce_sum(world_, total);
    if (total.front() == 0) {
      ++report.empty;
      continue;
    }
    for (std::size_t e = 0; e < exits_.size(); ++e) {
      report.loss += learn_step(e, rows, total.front()) / static_cast<double>(exits_.size());
      const OptimizerReport done = make_step(exec_, exits_[e].optimizer, exits_[e].gradients,
                                             options_.schedule, exits_[e].publish);
      report.learning_rate = done.learning_rate;
      report.skipped += done.skipped ? 1 : 0;
      if (!done.skipped) report.grad_norm += done.grad_norm;
    }
    ++report.steps;
  }
  report.loss /= std::max(1, report.steps);
  const auto made = static_cast<double>(report.steps * std::ssize(exits_) - report.skipped);
  report.grad_norm /= std::max(1.0, made);
  return report;
}

// Sets the gradient of one head; the loss of all ranks.
double ExitTrainer::learn_step(std::size_t e, std::span<const int> rows, std::int64_t total) {
  const ExitTarget& exit = exits_[e];
  exit.gradients.clear(exec_);
  std::vector<std::int32_t> targets;
  for (const int row : rows) targets.push_back(targets_[static_cast<std::size_t>(row)]);
  const double weight = 1.0 / static_cast<double>(total);
  std::vector<double> loss{0.0};
  // The streams themselves do not learn.
  heads_[e].backward(exec_, exit.view, exit.parallel,
                     ConstFloatMatrix(streams(e, 0, targets_.size())), rows, targets,
                     {static_cast<int>(ids_.size()), options_.temperature},
                     [&](std::size_t, float log_prob, float) {
                       loss.front() -= weight * log_prob;
                       return TokenSlope{static_cast<float>(-weight), 0.0f};
                     },
                     {}, exit.gradients.matrix(ParamRole::kEmbedding), {});
  all_reduce_ordered_sum(world_, loss);
  return loss.front();
}

}  // namespace taper
