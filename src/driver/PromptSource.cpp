// SPDX-License-Identifier: Apache-2.0
#include "driver/PromptSource.hpp"

namespace taper {
namespace {
// Evaluation items come from another seed: never seen in training, whatever the number of iterations.
constexpr std::uint64_t kHeldOut = 0x5EED0E7A1ull << 20;
}  // namespace

PromptSource::PromptSource(const DataOptions& options, const Tokenizer& tokenizer, std::uint64_t seed)
    : tokenizer_(&tokenizer), mix_(TaskMix::from_name(options.task)), seed_(seed) {}

std::vector<PromptItem> PromptSource::items(std::uint64_t seed, std::uint64_t first, int count) const {
  std::vector<PromptItem> list;
  for (int i = 0; i < count; ++i) {
    const TaskItem item = make_task_item(mix_, seed, first + static_cast<std::uint64_t>(i));
    const auto ids = tokenizer_->encode(item.prompt, AddSpecial::kYes);
    list.push_back({{ids.begin(), ids.end()}, item.answer});
  }
  return list;
}

std::vector<PromptItem> PromptSource::training(std::int64_t iteration, int count) const {
  return items(seed_, static_cast<std::uint64_t>(iteration) * static_cast<std::uint64_t>(count), count);
}

std::vector<PromptItem> PromptSource::evaluation(int count) const { return items(seed_ ^ kHeldOut, 0, count); }

}  // namespace taper
