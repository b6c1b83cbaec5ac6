// SPDX-License-Identifier: Apache-2.0
#include "rl/MicroBatch.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

// The largest that a stretch of sequences may be; one that is larger alone is a stretch.
struct Limits {
  int rows, tokens, sequences;
};

// Stretches within the limits. What part_of gives for sequences of one stretch is equal.
std::vector<Range> cut(const SequenceSizes& sizes, const Limits& limits,
                       const std::function<std::int64_t(int)>& part_of) {
  std::vector<Range> stretches;
  int rows = 0, tokens = 0;
  for (int i = 0; i < sizes.count(); ++i) {
    if (stretches.empty() || rows + sizes.rows[i] > limits.rows ||
        tokens + sizes.tokens[i] > limits.tokens || stretches.back().size() == limits.sequences ||
        part_of(i) != part_of(i - 1)) {
      stretches.push_back({i, i});
      rows = sizes.tokens[i] - sizes.rows[i];  // nothing before it to share
      tokens = 0;
    }
    stretches.back().end = i + 1;
    rows += sizes.rows[i];
    tokens += sizes.tokens[i];
  }
  return stretches;
}

void require_room(const std::vector<int>& lengths, int max_rows) {
  for (const int length : lengths)
    TAPER_VALIDATE(length <= max_rows, "a sequence has "
                                           << length << " tokens (a micro-batch holds " << max_rows
                                           << "); raise Training/Max Tokens");
}

// The indices of a stretch of `list`.
std::vector<int> part_of(const std::vector<int>& list, Range range) {
  return {list.begin() + range.begin, list.begin() + range.end};
}

std::vector<int> count_up(std::size_t n) {
  std::vector<int> list(n);
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// The replica of each bundle, by its rows.
std::vector<int> deal_bundles(const SequenceSizes& sizes, const std::vector<Range>& bundles,
                              int replicas, const ReplicaSpeeds& speeds = {}) {
  std::vector<int> rows;
  for (const auto& [begin, end] : bundles)
    rows.push_back(std::accumulate(sizes.rows.begin() + begin + 1, sizes.rows.begin() + end,
                                   sizes.tokens[begin]));
  return assign_replicas(rows, replicas, speeds);
}

}  // namespace

std::vector<int> assign_replicas(const std::vector<int>& lengths, int replicas,
                                 const ReplicaSpeeds& speeds) {
  TAPER_EXPECT(speeds.empty() || std::ssize(speeds) == replicas);
  std::vector<int> order = count_up(lengths.size()), replica(lengths.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lengths[a] > lengths[b]; });
  std::vector<std::int64_t> load(replicas, 0);
  for (const int i : order) {
    int first = 0;
    // (load + length) / speed, without dividing.
    const auto is_sooner = [&](int a, int b) {
      const auto end = [&](int r) { return load[r] + lengths[i]; };
      const auto speed = [&](int r) { return speeds.empty() ? 1 : speeds[r]; };
      return end(a) * speed(b) < end(b) * speed(a);
    };
    for (int r = 1; r < replicas; ++r)
      if (is_sooner(r, first)) first = r;
    load[first] += lengths[i];
    replica[i] = first;
  }
  return replica;
}

std::vector<int> assign_samples(const std::vector<int>& lengths, int dp_size, int dp_rank) {
  const std::vector<int> replica = assign_replicas(lengths, dp_size);
  std::vector<int> mine;
  for (std::size_t i = 0; i < replica.size(); ++i)
    if (replica[i] == dp_rank) mine.push_back(static_cast<int>(i));
  return mine;
}

int mini_batch_of(std::int64_t prompt, std::int64_t prompts, int parts) {
  return static_cast<int>(
      prompt * std::max<std::int64_t>(1, std::min<std::int64_t>(parts, prompts)) / prompts);
}

std::vector<Range> cut_mini_batches(const std::vector<int>& ends, int parts) {
  const std::size_t prompts = ends.size();
  std::vector<Range> batches(std::max(1, std::min<int>(parts, static_cast<int>(prompts))));
  for (std::size_t p = 0; p < prompts; ++p)
    batches[mini_batch_of(static_cast<std::int64_t>(p), static_cast<std::int64_t>(prompts), parts)]
        .end = ends[p];
  for (std::size_t b = 1; b < batches.size(); ++b) batches[b].begin = batches[b - 1].end;
  return batches;
}

std::vector<std::vector<int>> cut_micro_batches(const std::vector<int>& lengths, int max_rows,
                                                int max_sequences) {
  require_room(lengths, max_rows);
  const std::vector<int> all = count_up(lengths.size());
  std::vector<std::vector<int>> batches;
  for (const Range part : cut(lengths, {max_rows, max_rows, max_sequences}, [](int) { return 0; }))
    batches.push_back(part_of(all, part));
  return batches;
}

std::vector<Range> cut_bundles(const SequenceSizes& sizes, const TrainPassOptions& pass) {
  require_room(sizes.tokens, pass.max_rows);
  const Limits limits{pass.bundle_tokens, pass.max_rows, pass.max_sequences};
  if (pass.bundles_of_prompts) return cut(sizes, limits, [&](int i) { return sizes.prompts[i]; });
  const auto total = std::accumulate(sizes.rows.begin(), sizes.rows.end(), std::int64_t{0});
  constexpr std::int64_t kLeastParts = 4;
  std::int64_t parts = kLeastParts;
  while (parts * pass.bundle_tokens < total) parts *= 2;
  // The part in which the middle of a sequence lies.
  std::vector<std::int64_t> part;
  std::int64_t before = 0;
  for (const int rows : sizes.rows) {
    part.push_back((2 * before + rows) * parts / std::max<std::int64_t>(1, 2 * total));
    before += rows;
  }
  return cut(sizes, limits, [&](int i) { return part[i]; });
}

std::vector<int> deal(const SequenceSizes& sizes, int replicas, const TrainPassOptions& pass,
                      const ReplicaSpeeds& speeds, std::vector<int> early) {
  if (pass.bundle_tokens == 0) return assign_replicas(sizes.tokens, replicas, speeds);
  std::vector<int> replica = std::move(early);
  replica.resize(sizes.tokens.size(), kNoReplica);
  std::vector<Range> bundles = cut_bundles(sizes, pass);
  std::erase_if(bundles, [&](Range bundle) { return replica[bundle.begin] != kNoReplica; });
  const std::vector<int> of_bundle = deal_bundles(sizes, bundles, replicas, speeds);
  for (std::size_t b = 0; b < bundles.size(); ++b)
    std::fill(replica.begin() + bundles[b].begin, replica.begin() + bundles[b].end, of_bundle[b]);
  return replica;
}

std::vector<std::vector<int>> micro_batches_of(const SequenceSizes& sizes, int dp_size, int dp_rank,
                                               const TrainPassOptions& pass) {
  std::vector<std::vector<int>> batches;
  if (pass.bundle_tokens > 0) {
    const std::vector<int> all = count_up(sizes.tokens.size());
    const std::vector<Range> bundles = cut_bundles(sizes, pass);
    const std::vector<int> of_bundle = deal_bundles(sizes, bundles, dp_size);
    for (std::size_t b = 0; b < bundles.size(); ++b)
      if (of_bundle[b] == dp_rank) batches.push_back(part_of(all, bundles[b]));
    return batches;
  }
  const std::vector<int> mine = assign_samples(sizes.tokens, dp_size, dp_rank);
  std::vector<int> my_lengths;
  for (const int i : mine) my_lengths.push_back(sizes.tokens[i]);
  batches = cut_micro_batches(my_lengths, pass.max_rows, pass.max_sequences);
  for (auto& batch : batches)
    for (int& i : batch) i = mine[i];
  return batches;
}

void PackedEnds::add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> rest) {
  TAPER_EXPECT(tokens.size() + rest.size() > 0);
  sequences.ids.insert(sequences.ids.end(), tokens.begin(), tokens.end());
  sequences.ids.insert(sequences.ids.end(), rest.begin(), rest.end());
  sequences.lengths.push_back(static_cast<int>(tokens.size() + rest.size()));
  rows.push_back(sequences.rows() - 1);
}

void PackedSamples::add(std::span<const std::int32_t> prompt,
                        std::span<const std::int32_t> response) {
  TAPER_EXPECT(!prompt.empty() && !response.empty());
  const int first = sequences.rows(), size = static_cast<int>(prompt.size());
  const int shared = shares(prompt) ? size - 1 : 0;
  if (shared == 0) prompt_ = {first, first + size};
  if (shares_prompts) sequences.shared.push_back(shared);
  sequences.ids.insert(sequences.ids.end(), prompt.begin() + shared, prompt.end());
  sequences.ids.insert(sequences.ids.end(), response.begin(), response.end() - 1);
  sequences.lengths.push_back(sequences.rows() - first);
  for (std::size_t i = 0; i < response.size(); ++i) {
    rows.push_back(first + size - shared + static_cast<int>(i) - 1);
    targets.push_back(response[i]);
  }
}

bool PackedSamples::shares(std::span<const std::int32_t> prompt) const {
  return shares_prompts && static_cast<int>(prompt.size()) == prompt_.size() &&
         std::equal(prompt.begin(), prompt.end(), sequences.ids.begin() + prompt_.begin);
}

void PackedSamples::add(std::span<const std::int32_t> tokens, std::span<const Range> answers) {
  TAPER_EXPECT(!answers.empty() && answers.front().begin > 0);
  const int first = sequences.rows();
  sequences.ids.insert(sequences.ids.end(), tokens.begin(), tokens.end() - 1);
  sequences.lengths.push_back(static_cast<int>(tokens.size()) - 1);
  for (const Range& answer : answers)
    for (int i = answer.begin; i < answer.end; ++i) {
      rows.push_back(first + i - 1);
      targets.push_back(tokens[i]);
    }
}

}  // namespace taper
