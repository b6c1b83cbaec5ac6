// SPDX-License-Identifier: Apache-2.0
#include "pricing/CallPrices.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace taper {
namespace {

void add(PassWork& work, int rows, int length, int targets) {
  const double sum = work.length * static_cast<double>(work.rows) + 1.0 * length * rows;
  work.rows += rows;
  work.targets += targets;
  work.length = work.rows == 0 ? 0.0 : sum / static_cast<double>(work.rows);
}

}  // namespace

CallPrices::CallPrices(const LatencyProfile& profile, std::vector<ReplayTrace> traces,
                       const CallSetting& setting)
    : machine_(profile),
      passes_(profile),
      traces_(std::move(traces)),
      setting_(setting),
      samples_(std::max(1, traces_.back().work.samples)) {}

int CallPrices::length(int sample) const {
  const Outcome& o = traces_.back().outcomes[static_cast<std::size_t>(sample)];
  return o.prompt + o.response;
}

std::int64_t CallPrices::tokens() const {
  std::int64_t sum = 0;
  for (const Outcome& o : traces_.back().outcomes) sum += o.prompt + o.response;
  return sum;
}

PassWork CallPrices::whole(const std::vector<int>& members) const {
  PassWork work;
  for (const int i : members) add(work, length(i), length(i), 0);
  return work;
}

// Without the last token of a sample, which is no input, and, if prompts are shared, with one
// prompt for samples of it that follow one another.
PassWork CallPrices::inputs(const std::vector<int>& members, bool with_targets) const {
  PassWork work;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const int i = members[k];
    const Outcome& o = traces_.back().outcomes[static_cast<std::size_t>(i)];
    const bool shares =
        setting_.pass.shares_prefixes && k > 0 && members[k - 1] / samples_ == i / samples_;
    add(work, length(i) - 1 - (shares ? o.prompt - 1 : 0), length(i),
        with_targets ? o.response : 0);
  }
  return work;
}

std::vector<Range> CallPrices::mini_batches(const UpdateSteps& steps) const {
  const int count = static_cast<int>(traces_.back().outcomes.size());
  std::vector<int> ends;  // of the samples of a prompt
  while (ends.empty() || ends.back() < count)
    ends.push_back(std::min(count, static_cast<int>(ends.size() + 1) * samples_));
  return cut_mini_batches(ends, steps.mini_batches);
}

SequenceSizes CallPrices::sizes(Range range) const {
  SequenceSizes sizes;
  for (int i = range.begin; i < range.end; ++i)
    sizes.add_sample(length(i),
                     static_cast<int>(traces_.back().outcomes[static_cast<std::size_t>(i)].prompt),
                     i / samples_, setting_.pass.shares_prefixes);
  return sizes;
}

std::vector<int> CallPrices::dealt(int replicas, const UpdateSteps& steps) const {
  std::vector<int> replica_of;
  for (const Range range : mini_batches(steps)) {
    const auto part = deal(sizes(range), replicas, setting_.pass);
    replica_of.insert(replica_of.end(), part.begin(), part.end());
  }
  return replica_of;
}

// rl/SampleSet shares samples out by length.
std::vector<int> CallPrices::shared_out(int replicas) const {
  std::vector<int> lengths;
  for (int i = 0; i < std::ssize(traces_.back().outcomes); ++i) lengths.push_back(length(i));
  return assign_replicas(lengths, replicas);
}

// Micro-batches as large as there is room.
std::vector<CallPrices::Batches> CallPrices::large_batches(const std::vector<int>& replica_of,
                                                           int replicas, int last_tokens) const {
  std::vector<std::vector<int>> members(static_cast<std::size_t>(replicas));
  for (std::size_t i = 0; i < replica_of.size(); ++i)
    members[static_cast<std::size_t>(replica_of[i])].push_back(static_cast<int>(i));
  std::vector<Batches> all;
  for (const auto& mine : members) {
    std::vector<int> lengths;
    for (const int i : mine) lengths.push_back(length(i) - last_tokens);
    Batches batches =
        cut_micro_batches(lengths, setting_.pass.max_rows, setting_.pass.max_sequences);
    for (auto& batch : batches)
      for (int& i : batch) i = mine[static_cast<std::size_t>(i)];
    all.push_back(std::move(batches));
  }
  return all;
}

// Micro-batches of an optimizer step, which are bundles if gradients depend on no layout.
std::vector<CallPrices::Batches> CallPrices::bundles(Range range,
                                                     const std::vector<int>& replica_of,
                                                     int replicas) const {
  std::vector<Batches> all(static_cast<std::size_t>(replicas));
  const SequenceSizes of_range = sizes(range);
  if (setting_.pass.bundle_tokens > 0) {
    for (const Range bundle : cut_bundles(of_range, setting_.pass)) {
      std::vector<int> members(static_cast<std::size_t>(bundle.end - bundle.begin));
      std::iota(members.begin(), members.end(), range.begin + bundle.begin);
      const int replica = replica_of[static_cast<std::size_t>(members.front())];
      all[static_cast<std::size_t>(replica)].push_back(std::move(members));
    }
    return all;
  }
  for (int g = 0; g < replicas; ++g)
    for (auto members : micro_batches_of(of_range, replicas, g, setting_.pass)) {
      for (int& i : members) i += range.begin;
      all[static_cast<std::size_t>(g)].push_back(std::move(members));
    }
  return all;
}

template <class Work>
std::int64_t CallPrices::slowest(PassKind kind, const ModelLayout& layout,
                                 const std::vector<Batches>& replicas, const Work& work) const {
  const int tp = layout.grid.tp;
  const PairClass pair = profile().pair_of(layout.first, tp);
  const bool recomputes =
      kind == PassKind::kLearn && setting_.pass.checkpointing == Checkpointing::kYes;
  std::int64_t most = 0;
  for (const Batches& batches : replicas) {
    std::int64_t sum = 0;
    for (const auto& batch : batches) {
      const PassWork w = work(batch);
      sum += passes_.pass_ns(kind, tp, pair, w);
      if (recomputes) sum += passes_.pass_ns(PassKind::kForward, tp, pair, {w.rows, 0, w.length});
    }
    most = std::max(most, sum);
  }
  return most;
}

// All replicas count as having the links of the first one.
template <class Price>
std::int64_t CallPrices::once(const char* call, int variant, const ModelLayout& layout,
                              const Price& price) const {
  const RankGrid& grid = layout.grid;
  const auto key = std::tuple(std::string(call), variant, grid.tp, grid.dp,
                              profile().pair_of(layout.first, grid.tp),
                              profile().pair_of(layout.first, grid.ranks()));
  const auto known = known_.find(key);
  return known != known_.end() ? known->second : known_[key] = price();
}

std::int64_t CallPrices::reward_ns(const ModelLayout& layout) const {
  return once("reward", 0, layout, [&] {
    const int replicas = layout.grid.dp;
    return slowest(PassKind::kForward, layout, large_batches(shared_out(replicas), replicas, 0),
                   [&](const std::vector<int>& members) { return whole(members); });
  });
}

std::int64_t CallPrices::forward_ns(const ModelLayout& layout, const UpdateSteps& steps,
                                    LearnsFrom from) const {
  const bool with_targets = from == LearnsFrom::kLogProbs;
  return once(with_targets ? "reference" : "values", steps.mini_batches, layout, [&] {
    const int replicas = layout.grid.dp;
    return slowest(PassKind::kForward, layout, large_batches(dealt(replicas, steps), replicas, 1),
                   [&](const std::vector<int>& members) { return inputs(members, with_targets); });
  });
}

std::int64_t CallPrices::update_ns(const ModelLayout& layout, const UpdateSteps& steps,
                                   LearnsFrom from) const {
  const bool with_targets = from == LearnsFrom::kLogProbs;
  const std::int64_t epoch =
      once(with_targets ? "policy" : "critic", steps.mini_batches, layout, [&] {
        const int replicas = layout.grid.dp;
        const std::vector<int> replica_of = dealt(replicas, steps);
        std::int64_t sum = 0;
        for (const Range range : mini_batches(steps)) {
          sum += slowest(
              PassKind::kLearn, layout, bundles(range, replica_of, replicas),
              [&](const std::vector<int>& members) { return inputs(members, with_targets); });
          sum += passes_.update_ns(layout.grid.tp, replicas,
                                   profile().pair_of(layout.first, layout.grid.ranks()));
        }
        return sum;
      });
  return epoch * steps.epochs;
}

std::int64_t CallPrices::generation_ns(const RankGrid& grid, const DivisorChain& chain) const {
  return once("generation", 0, {0, grid}, [&] {
    std::vector<int> degrees, larger;
    const std::vector<int> known = profile().degrees();
    for (const int degree : chain.degrees()) {
      if (degree > grid.ranks()) break;
      degrees.push_back(degree);
      if (degree >= grid.tp && std::binary_search(known.begin(), known.end(), degree))
        larger.push_back(degree);
    }
    const DivisorChain block(degrees);
    std::vector<ReplayTrace> traces = traces_;
    if (setting_.max_running > 0)
      for (ReplayTrace& trace : traces)
        trace.work.slots_per_rank = std::max(1, setting_.max_running / grid.tp);
    if (!setting_.may_change_layout)
      return replay_ns(traces.back(), Layout::uniform(grid.tp, block), {}, machine_);
    PlannerOptions options;
    options.seed = setting_.seed;
    options.degrees = larger;
    Planner planner(profile(), block, options);
    std::int64_t last = 0;
    for (const ReplayTrace& trace : traces)
      last = simulate(planner, options, trace, machine_).time_ns;
    return last;
  });
}

}  // namespace taper
