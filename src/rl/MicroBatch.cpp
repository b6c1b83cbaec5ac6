// SPDX-License-Identifier: Apache-2.0
#include "rl/MicroBatch.hpp"

#include <algorithm>
#include <numeric>

#include "base/Error.hpp"

namespace taper {

std::vector<int> assign_replicas(const std::vector<int>& lengths, int replicas) {
  std::vector<int> order(lengths.size()), replica(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return lengths[a] > lengths[b]; });
  std::vector<std::int64_t> load(replicas, 0);
  for (const int i : order) {
    const auto lightest = std::min_element(load.begin(), load.end());
    *lightest += lengths[i];
    replica[i] = static_cast<int>(lightest - load.begin());
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

std::vector<std::vector<int>> cut_micro_batches(const std::vector<int>& lengths, int max_rows,
                                                int max_sequences) {
  std::vector<std::vector<int>> batches;
  int rows = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    TAPER_VALIDATE(lengths[i] <= max_rows, "a sequence has "
                                               << lengths[i] << " tokens (a micro-batch holds "
                                               << max_rows << "); raise Training/Max Tokens");
    const bool full = batches.empty() || rows + lengths[i] > max_rows ||
                      static_cast<int>(batches.back().size()) == max_sequences;
    if (full) {
      batches.emplace_back();
      rows = 0;
    }
    batches.back().push_back(static_cast<int>(i));
    rows += lengths[i];
  }
  return batches;
}

std::vector<std::vector<int>> micro_batches_of(const std::vector<int>& lengths, int dp_size,
                                               int dp_rank, int max_rows, int max_sequences) {
  const auto mine = assign_samples(lengths, dp_size, dp_rank);
  std::vector<int> my_lengths;
  my_lengths.reserve(mine.size());
  for (const int i : mine) my_lengths.push_back(lengths[i]);
  auto batches = cut_micro_batches(my_lengths, max_rows, max_sequences);
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
  const int first = sequences.rows();
  sequences.ids.insert(sequences.ids.end(), prompt.begin(), prompt.end());
  sequences.ids.insert(sequences.ids.end(), response.begin(), response.end() - 1);
  sequences.lengths.push_back(static_cast<int>(prompt.size() + response.size()) - 1);
  for (std::size_t i = 0; i < response.size(); ++i) {
    rows.push_back(first + static_cast<int>(prompt.size() + i) - 1);
    targets.push_back(response[i]);
  }
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
