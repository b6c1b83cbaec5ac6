// SPDX-License-Identifier: Apache-2.0
#include "engine/Sampler.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

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

// Of each row that is drawn from, the ids of all shards that may be kept; of others none.
// Collective over parallel.group().
std::vector<std::vector<WeightedId>> heaviest_ids(const Exec& exec, const ModelParallel& parallel,
                                                  const RowLogits& l, int valid_ids,
                                                  std::span<const Draw> draws,
                                                  const SamplingOptions& options) {
  const Group& group = parallel.group();
  const int valid = parallel.shard().valid_vocab(valid_ids);
  const std::size_t rows = l.mass.size(), shards = group.size();
  Staged<MassLevel> mine(rows * kMassLevels);
  count_mass_levels(exec, MatrixView<MassLevel, Exec>(mine.data(), rows, kMassLevels), l.logits,
                    l.max, valid);
  exec.fence();
  std::vector<MassLevel> all(shards * mine.size());
  all_gather(group, all, mine);
  const auto level_of = [&](std::size_t shard, std::size_t row, int level) -> const MassLevel& {
    return all[(shard * rows + row) * kMassLevels + level];
  };

  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  Staged<std::int64_t> least(rows, kNone), begin(rows);
  std::vector<std::vector<std::int64_t>> ids(shards, std::vector<std::int64_t>(rows));
  for (const Draw& draw : draws) {
    const std::size_t row = draw.row;
    if (least[row] != kNone) continue;  // another sample is drawn from it
    std::array<MassLevel, kMassLevels> levels;
    for (int j = 0; j < kMassLevels; ++j)
      for (std::size_t s = 0; s < shards; ++s) levels[j] += level_of(s, row, j);
    const int kept = levels_to_keep(levels, l.mass[row], options);
    least[row] = least_mass(kept - 1);
    for (std::size_t s = 0; s < shards; ++s)
      for (int j = 0; j < kept; ++j) ids[s][row] += level_of(s, row, j).ids;
  }
  std::vector<std::int64_t> counts;
  for (const auto& of_rows : ids)
    counts.push_back(std::accumulate(of_rows.begin(), of_rows.end(), std::int64_t{0}));
  std::exclusive_scan(ids[group.rank()].begin(), ids[group.rank()].end(), begin.begin(),
                      std::int64_t{0});
  Staged<WeightedLogit> listed(counts[group.rank()]);
  list_weighted_logits(exec, staging_view(listed), staging_view(std::as_const(begin)),
                       staging_view(std::as_const(least)), l.logits, l.max, valid);
  exec.fence();
  std::vector<WeightedLogit> gathered(
      std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  all_gather_v(group, gathered, listed, counts);

  std::vector<std::vector<WeightedId>> heaviest(rows);
  auto at = gathered.begin();
  for (std::size_t s = 0; s < shards; ++s) {
    const int first = parallel.shard(static_cast<int>(s)).first_id();
    for (std::size_t r = 0; r < rows; ++r)
      for (const auto end = at + ids[s][r]; at != end; ++at)
        heaviest[r].push_back({first + at->column, at->logit, at->mass});
  }
  return heaviest;
}

// Sampling from what top-k, top-p and min-p leave; sets kept_mass. Every rank knows all choices.
// Collective over parallel.group().
std::vector<Choice> truncated_choices(const Exec& exec, const ModelParallel& parallel,
                                      const RowLogits& l, int valid_ids,
                                      std::span<const Draw> draws, const SamplingOptions& options,
                                      std::vector<float>& kept_mass) {
  auto heaviest = heaviest_ids(exec, parallel, l, valid_ids, draws, options);
  std::vector<std::optional<KeptIds>> kept(heaviest.size());
  std::vector<Choice> choices(draws.size());
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const int row = draws[i].row;
    if (!kept[row]) kept[row] = truncate(std::move(heaviest[row]), l.mass[row], options);
    const WeightedId& drawn = kept[row]->at(target_mass(options, draws[i], kept[row]->mass));
    kept_mass[i] =
        static_cast<float>(static_cast<double>(kept[row]->mass) / static_cast<double>(l.mass[row]));
    choices[i] = {drawn.id, drawn.logit};
  }
  return choices;
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
