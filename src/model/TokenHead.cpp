// SPDX-License-Identifier: Apache-2.0
#include "model/TokenHead.hpp"

#include <algorithm>
#include <cmath>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "kernels/copy.hpp"
#include "kernels/norm.hpp"
#include "kernels/product.hpp"
#include "model/Activations.hpp"
#include "model/DeviceCollectives.hpp"

namespace taper {

// Of the gradient by the input, if there are several ranks: partial sums and what they are added
// in.
struct TokenHead::SumRoom {
  std::int64_t partials = 0, workspace = 0;  // floats

  SumRoom(const ModelParallel& parallel, int hidden, int rows) {
    if (parallel.group().is_null()) return;
    const ModelParallel::RowParallel& by = parallel.head_input();
    partials = std::int64_t{by.leaves.partials} * rows * hidden;
    workspace = static_cast<std::int64_t>(by.sum.workspace_floats(rows, hidden));
  }
};

std::int64_t TokenHead::floats(const ParamTable& table, const ModelParallel& parallel,
                               int chunk_rows) {
  const int hidden = table.config().hidden;
  const std::int64_t vocabulary = parallel.shard().vocab().size() * std::int64_t{kVocabBlock};
  const SumRoom sum(parallel, hidden, chunk_rows);
  return chunk_rows * (2 * std::int64_t{hidden} + vocabulary + 2) + sum.partials + sum.workspace +
         192;
}

TokenHead::TokenHead(const ParamTable& table, const ModelParallel& parallel, int chunk_rows,
                     float* memory)
    : table_(&table), chunk_rows_(chunk_rows) {
  const auto take = [&](std::int64_t count) {
    float* taken = memory;
    memory += aligned_floats(count);
    return taken;
  };
  const std::int64_t rows = chunk_rows, hidden = table.config().hidden;
  gathered_ = take(rows * hidden);
  normed_ = take(rows * hidden);
  logits_ = take(rows * parallel.shard().vocab().size() * kVocabBlock);
  max_ = take(rows);
  inv_ = take(rows);
  const SumRoom sum(parallel, table.config().hidden, chunk_rows);
  partials_ = take(sum.partials);
  workspace_ = take(sum.workspace);
}

RowLogits TokenHead::logits(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                            ConstFloatMatrix hidden, std::span<const int> rows,
                            const HeadOptions& options,
                            const std::function<void(FloatMatrix)>& edit) {
  TAPER_EXPECT(static_cast<int>(rows.size()) <= chunk_rows_);
  const int n = static_cast<int>(rows.size()), h = table_->config().hidden;
  const int valid = parallel.shard().valid_vocab(options.valid_ids);
  const StagedInput<int> on_device(rows);
  gather_rows(exec, make_matrix(gathered_, n, h), hidden, on_device.view());
  const FloatMatrix normed = make_matrix(normed_, n, h);
  rmsnorm(exec, flat(normed), FloatVector(inv_, n), ConstFloatVector(gathered_, std::size_t(n) * h),
          view.final_norm(), {h, h, table_->config().norm_eps});
  RowLogits result;
  result.logits = make_matrix(logits_, n, view.head().columns);
  result.max = FloatVector(max_, n);
  multiply(exec, result.logits, normed, view.head());
  if (edit) edit(result.logits);
  scale_logits(exec, result.logits, result.max, valid, options.temperature);
  all_reduce_max(exec, parallel.group(), result.max);
  result.host_max.resize(n);
  copy(exec, staging_view(result.host_max), ConstFloatVector(result.max));
  Staged<std::int64_t> mine(n);
  sum_masses(exec, staging_view(mine), result.logits, result.max, valid);
  exec.fence();
  result.shard_mass.resize(static_cast<std::size_t>(parallel.group().size()) * n);
  all_gather(parallel.group(), result.shard_mass, mine);
  result.mass.assign(n, 0);
  std::vector<bool> finite(n, true);
  for (std::size_t i = 0; i < result.shard_mass.size(); ++i) {
    result.mass[i % n] += result.shard_mass[i];
    if (result.shard_mass[i] < 0) finite[i % n] = false;
  }
  for (int i = 0; i < n; ++i)
    if (!finite[i] || result.mass[i] <= 0 || !std::isfinite(result.host_max[i]))
      TAPER_FAIL(ExitCode::kFailure, "the logits of a token are not finite (row "
                                         << rows[i] << ", maximum " << result.host_max[i]
                                         << "); the weights have diverged or the input is damaged");
  return result;
}

void TokenHead::chunk_log_probs(const Exec& exec, const ModelParallel& parallel, const RowLogits& l,
                                std::span<const std::int32_t> targets, int valid,
                                std::span<float> log_probs, std::span<float> entropy) {
  const std::size_t n = targets.size();
  const std::int32_t begin = parallel.shard().first_id();
  // The owner of the target id says its logit; -inf elsewhere makes the maximum a copy.
  Staged<float> chosen(n);
  Staged<LogitPlace> places(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t local = targets[i] - begin;
    places[i] = {static_cast<std::int32_t>(i), local >= 0 && local < valid ? local : -1};
  }
  pick_logits(exec, staging_view(chosen), l.logits, staging_view(places));
  exec.fence();
  all_reduce_max(parallel.group(), chosen);
  for (std::size_t i = 0; i < n; ++i) log_probs[i] = log_prob(chosen[i], l.host_max[i], l.mass[i]);
  if (entropy.empty()) return;
  Staged<std::int64_t> weighted(n);
  sum_weighted_logits(exec, staging_view(weighted), l.logits, l.max, valid);
  exec.fence();
  all_reduce_sum(parallel.group(), weighted);
  for (std::size_t i = 0; i < n; ++i) {
    const auto total = static_cast<double>(l.mass[i]), sum = static_cast<double>(weighted[i]);
    entropy[i] = static_cast<float>(std::log(total * 0x1p-40) - sum / total);
  }
}

void TokenHead::log_probs(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                          ConstFloatMatrix hidden, std::span<const int> rows,
                          std::span<const std::int32_t> targets, const HeadOptions& options,
                          std::span<float> log_prob, std::span<float> entropy) {
  const std::size_t n = rows.size(), chunk = static_cast<std::size_t>(chunk_rows_);
  const int valid = parallel.shard().valid_vocab(options.valid_ids);
  for (std::size_t at = 0; at < n; at += chunk) {
    const std::size_t size = std::min(chunk, n - at);
    const RowLogits l = logits(exec, view, parallel, hidden, rows.subspan(at, size), options);
    chunk_log_probs(exec, parallel, l, targets.subspan(at, size), valid, log_prob.subspan(at, size),
                    entropy.empty() ? entropy : entropy.subspan(at, size));
  }
}

void TokenHead::backward(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
                         ConstFloatMatrix hidden, std::span<const int> rows,
                         std::span<const std::int32_t> targets, const HeadOptions& options,
                         const TokenLoss& loss, FloatMatrix d_hidden, const GradientView& d_head,
                         const GradientView& d_final_norm) {
  const std::size_t n = rows.size(), chunk = static_cast<std::size_t>(chunk_rows_);
  const int h = table_->config().hidden, valid = parallel.shard().valid_vocab(options.valid_ids);
  const std::int32_t begin = parallel.shard().first_id();
  for (std::size_t at = 0; at < n; at += chunk) {
    const std::size_t size = std::min(chunk, n - at);
    const RowLogits l = logits(exec, view, parallel, hidden, rows.subspan(at, size), options);
    std::vector<float> log_prob(size), entropy(size);
    chunk_log_probs(exec, parallel, l, targets.subspan(at, size), valid, log_prob, entropy);
    Staged<LogitSlope> slopes(size);
    Staged<std::int32_t> local(size);
    for (std::size_t i = 0; i < size; ++i) {
      const TokenSlope slope = loss(at + i, log_prob[i], entropy[i]);
      slopes[i] = {log_sum_exp(l.host_max[i], l.mass[i]), entropy[i], slope.by_log_prob,
                   slope.by_entropy};
      const std::int32_t id = targets[at + i] - begin;
      local[i] = id >= 0 && id < valid ? id : -1;
    }
    logit_gradients(exec, l.logits, staging_view(slopes), staging_view(local), valid,
                    options.temperature);
    const FloatMatrix normed = make_matrix(normed_, static_cast<int>(size), h);
    accumulate_outer(exec, d_head, l.logits, normed);
    if (d_hidden.size() == 0) {
      exec.fence();
      continue;
    }
    // normed is no longer needed: now its gradient. One chain over a whole vocabulary would lose
    // most of its small terms, each far below the last bit of the sum of those before it: blocks
    // are added as a tree.
    parallel.multiply(exec, view.head_t(), parallel.head_input(), normed, l.logits, partials_,
                      workspace_);
    rmsnorm_backward(exec, flat(normed), d_final_norm, flat(normed),
                     ConstFloatVector(gathered_, size * h), ConstFloatVector(inv_, size),
                     view.final_norm(), {h, h, table_->config().norm_eps}, Accumulate::kNo);
    const StagedInput<int> on_device(rows.subspan(at, size));
    add_rows(exec, d_hidden, normed, on_device.view());
    exec.fence();
  }
}

}  // namespace taper
