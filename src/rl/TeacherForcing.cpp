// SPDX-License-Identifier: Apache-2.0
#include "rl/TeacherForcing.hpp"

#include "rl/MicroBatch.hpp"

namespace taper {

std::vector<std::vector<float>> response_log_probs(
    const PassContext& c, const std::vector<std::span<const std::int32_t>>& prompts,
    const std::vector<std::span<const std::int32_t>>& responses) {
  std::vector<std::vector<float>> all(prompts.size());
  std::vector<int> lengths, index;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (responses[i].empty()) continue;
    lengths.push_back(static_cast<int>(prompts[i].size() + responses[i].size()) - 1);
    index.push_back(static_cast<int>(i));
  }
  for (const auto& batch :
       cut_micro_batches(lengths, c.options.max_rows, c.options.max_sequences)) {
    PackedSamples packed;
    packed.shares_prompts = c.options.shares_prefixes;
    for (const int b : batch) packed.add(prompts[index[b]], responses[index[b]]);
    std::vector<float> log_probs(packed.rows.size());
    c.pass.forward(c.exec, c.view, c.parallel, packed.sequences);
    c.pass.log_probs(c.exec, c.view, c.parallel, packed.rows, packed.targets, c.head, log_probs,
                     {});
    auto next = log_probs.begin();
    for (const int b : batch) {
      const auto end = next + static_cast<std::ptrdiff_t>(responses[index[b]].size());
      all[index[b]].assign(next, end);
      next = end;
    }
  }
  return all;
}

}  // namespace taper
