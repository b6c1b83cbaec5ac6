// SPDX-License-Identifier: Apache-2.0
#include "engine/Sampler.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "engine/Truncation.hpp"
#include "kernels/Staging.hpp"
#include "kernels/logits.hpp"

namespace taper {
namespace {

std::int64_t target_mass(const SamplingOptions& options, const Draw& draw, std::int64_t mass) {
  const CounterRandom random(options.seed);
  return static_cast<std::int64_t>(
      random.below(token_key(options, draw.id, draw.position), static_cast<std::uint64_t>(mass)));
}

// The ids at the places, one per choice, with their logits.
std::vector<Choice> choices_at(const Exec& exec, const ModelParallel& parallel, const RowLogits& l,
                               const Staged<LogitPlace>& places) {
  const int begin = parallel.shard().first_id();
  Staged<float> logits(places.size());
  pick_logits(exec, staging_view(logits), l.logits, staging_view(places));
  exec.fence();
  std::vector<Choice> choices(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].column >= 0) choices[i] = {begin + places[i].column, logits[i]};
  return choices;
}

// The lowest id with the largest logit of all shards, if it is in this one.
std::vector<Choice> greedy_choices(const Exec& exec, const ModelParallel& parallel,
                                   const RowLogits& l, int valid_ids, std::span<const Draw> draws) {
  const int begin = parallel.shard().first_id(), valid = parallel.shard().valid_vocab(valid_ids);
  Staged<std::int32_t> column(l.mass.size());
  find_max(exec, staging_view(column), l.logits, l.max, valid);
  exec.fence();
  std::vector<Choice> choices(draws.size());
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const int row = draws[i].row;
    if (column[row] >= 0) choices[i] = {begin + column[row], l.host_max[row]};
  }
  return choices;
}

// Plain sampling: each shard looks for the target within its own stretch of the cumulated mass.
std::vector<Choice> sampled_choices(const Exec& exec, const ModelParallel& parallel,
                                    const RowLogits& l, int valid_ids, std::span<const Draw> draws,
                                    const SamplingOptions& options) {
  const std::size_t n = draws.size(), rows = l.mass.size();
  const int valid = parallel.shard().valid_vocab(valid_ids);
  const int begin = parallel.shard().first_id();
  std::vector<Choice> choices(n);
  // Rows of logits may serve several draws (the samples of one prompt): one pass per draw of a row.
  Staged<std::int64_t> target(rows);
  Staged<FoundLogit> found(rows);
  for (std::size_t done = 0; done < n;) {
    std::fill(target.begin(), target.end(), -1);
    std::size_t end = done;
    for (; end < n && target[draws[end].row] == -1; ++end) {
      const int row = draws[end].row;
      std::int64_t local = target_mass(options, draws[end], l.mass[row]);
      for (int shard = 0; shard < parallel.group().rank(); ++shard)
        local -= l.shard_mass[shard * rows + row];
      target[row] =
          local >= 0 && local < l.shard_mass[parallel.group().rank() * rows + row] ? local : -2;
    }
    find_masses(exec, staging_view(found), l.logits, l.max, staging_view(target), valid);
    exec.fence();
    for (; done < end; ++done) {
      const auto& [column, logit] = found[draws[done].row];
      if (column >= 0) choices[done] = {begin + column, logit};
    }
  }
  return choices;
}

// All masses of a row on every rank, in order of ids. Collective over parallel.group().
std::vector<std::int64_t> gather_masses(const Exec& exec, const ModelParallel& parallel,
                                        const RowLogits& l, int valid_ids, int row) {
  const int valid = parallel.shard().valid_vocab(valid_ids), size = parallel.group().size();
  Staged<std::int64_t> mine(valid);
  std::vector<std::int64_t> all(valid_ids), counts(size);
  if (valid > 0) {
    const std::size_t columns = l.logits.extent(1);
    list_masses(exec, MatrixView<std::int64_t, Exec>(mine.data(), 1, valid),
                ConstFloatMatrix(l.logits.data() + row * columns, 1, columns),
                ConstFloatVector(l.max.data() + row, 1), valid);
    exec.fence();
  }
  for (int r = 0; r < size; ++r) counts[r] = parallel.shard(r).valid_vocab(valid_ids);
  all_gather_v(parallel.group(), all, mine, counts);
  return all;
}

// Sampling from what top-k, top-p and min-p leave; sets kept_mass. Every rank computes the choice
// from all masses. Collective over parallel.group().
std::vector<Choice> truncated_choices(const Exec& exec, const ModelParallel& parallel,
                                      const RowLogits& l, int valid_ids,
                                      std::span<const Draw> draws, const SamplingOptions& options,
                                      std::vector<float>& kept_mass) {
  const int begin = parallel.shard().first_id(), valid = parallel.shard().valid_vocab(valid_ids);
  Staged<LogitPlace> places(draws.size());
  std::vector<std::int64_t> masses;
  KeptSet kept;
  int row_of_masses = -1;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const int row = draws[i].row;
    if (row != row_of_masses) {
      masses = gather_masses(exec, parallel, l, valid_ids, row);
      kept = truncate(masses, l.mass[row], options);
      row_of_masses = row;
    }
    const std::int32_t id = pick(masses, kept, target_mass(options, draws[i], kept.mass));
    kept_mass[i] =
        static_cast<float>(static_cast<double>(kept.mass) / static_cast<double>(l.mass[row]));
    places[i] = {row, id >= begin && id < begin + valid ? id - begin : -1};
  }
  return choices_at(exec, parallel, l, places);
}

}  // namespace

RandomKey token_key(const SamplingOptions& options, const ResponseId& id, int position) {
  const PromptKey prompt = options.key_of(id.prompt);
  return {options.purpose,
          prompt.iteration,
          prompt.ordinal,
          static_cast<std::uint64_t>(id.sample),
          static_cast<std::uint64_t>(position),
          0};
}

std::vector<DrawnToken> draw_tokens(const Exec& exec, const ModelParallel& parallel,
                                    const RowLogits& logits, int valid_ids,
                                    std::span<const Draw> draws, const SamplingOptions& options,
                                    StepExchange& exchange) {
  std::vector<float> kept_mass(draws.size(), 1.0f);
  std::vector<Choice> choices;
  if (options.temperature == 0.0f)
    choices = greedy_choices(exec, parallel, logits, valid_ids, draws);
  else if (options.truncates())
    choices = truncated_choices(exec, parallel, logits, valid_ids, draws, options, kept_mass);
  else
    choices = sampled_choices(exec, parallel, logits, valid_ids, draws, options);
  exchange.share(choices);
  std::vector<DrawnToken> tokens(draws.size());
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const int row = draws[i].row;
    TAPER_INSIST(choices[i].id >= 0, "no token was found for token "
                                         << draws[i].position << " of sample " << draws[i].id.sample
                                         << " of prompt " << draws[i].id.prompt);
    tokens[i] = {choices[i].id, log_prob(choices[i].logit, logits.host_max[row], logits.mass[row]),
                 kept_mass[i]};
  }
  return tokens;
}

}  // namespace taper
