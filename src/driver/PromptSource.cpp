// SPDX-License-Identifier: Apache-2.0
#include "driver/PromptSource.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "driver/InputPath.hpp"
#include "driver/PromptEncoder.hpp"
#include "driver/Shuffle.hpp"

namespace taper {
namespace {

// Evaluation items come from another seed: never seen in training, whatever the number of
// iterations.
constexpr std::uint64_t kHeldOut = 0x5EED0E7A1ull << 20;

}  // namespace

PromptSource::PromptSource(const DataOptions& options, const ModelFiles& files, int max_tokens,
                           std::uint64_t seed)
    : files_(&files),
      mix_(TaskMix::from_name(options.task)),
      seed_(seed),
      from_file_(!options.prompts.empty()) {
  if (from_file_) {
    require_input_file(options.names.prompts, options.prompts);
    training_ = read(options, options.prompts, max_tokens);
  }
  if (!options.evaluation_prompts.empty()) {
    require_input_file(options.names.evaluation_prompts, options.evaluation_prompts);
    evaluation_ = read(options, options.evaluation_prompts, max_tokens);
  }
}

std::vector<Prompt> PromptSource::read(const DataOptions& options, const std::string& file,
                                       int max_tokens) const {
  PromptEncoder encoder(*files_, options.chat_template);
  std::vector<Prompt> prompts;
  int too_long = 0;
  for (const PromptItem& item : read_prompt_data(file)) {
    const std::string where = line_text(file, item.line);
    TAPER_VALIDATE(
        !item.ground_truth.empty(),
        where << " has no 'ground_truth' (without it every response would count as wrong)");
    Prompt prompt{encoder.encode(item, where), item.ground_truth, item.data_source};
    if (static_cast<int>(prompt.tokens.size()) > max_tokens)
      ++too_long;
    else
      prompts.push_back(std::move(prompt));
  }
  if (too_long > 0)
    TAPER_INFO(path_text(file) << ": " << too_long << " of " << too_long + prompts.size()
                               << " prompts are left out (longer than " << max_tokens
                               << " tokens)");
  TAPER_VALIDATE(!prompts.empty(), path_text(file) << ": all prompts are longer than " << max_tokens
                                                   << " tokens; " << options.too_long_advice);
  return prompts;
}

std::vector<Prompt> PromptSource::items(std::uint64_t seed, std::uint64_t first, int count) const {
  std::vector<Prompt> list;
  for (int i = 0; i < count; ++i) {
    const TaskItem item = make_task_item(mix_, seed, first + static_cast<std::uint64_t>(i));
    const auto ids = files_->tokenizer().encode(item.prompt, AddSpecial::kYes);
    list.push_back({{ids.begin(), ids.end()}, item.answer, item.task});
  }
  return list;
}

std::vector<Prompt> PromptSource::training(std::int64_t iteration, int count) const {
  const std::uint64_t first =
      static_cast<std::uint64_t>(iteration) * static_cast<std::uint64_t>(count);
  if (!from_file_) return items(seed_, first, count);
  const std::uint64_t size = training_.size();
  std::vector<Prompt> list;
  std::vector<int> order;
  for (std::uint64_t at = first; at < first + static_cast<std::uint64_t>(count); ++at) {
    if (order.empty() || at % size == 0) order = shuffled(static_cast<int>(size), seed_, at / size);
    list.push_back(training_[order[at % size]]);
  }
  return list;
}

std::vector<Prompt> PromptSource::evaluation(int count) const {
  if (!evaluation_.empty())
    return {evaluation_.begin(),
            evaluation_.begin() + std::min<std::ptrdiff_t>(count, std::ssize(evaluation_))};
  TAPER_VALIDATE(!from_file_,
                 "Data/Evaluation Prompts is not set (evaluations need held-out prompts beside "
                 "Data/Prompts); set it, or "
                 "Evaluation/Every to 0");
  return items(seed_ ^ kHeldOut, 0, count);
}

}  // namespace taper
