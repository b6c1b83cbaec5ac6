// SPDX-License-Identifier: Apache-2.0
#include "data/PromptSource.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "data/PromptEncoder.hpp"
#include "io/InputPath.hpp"

namespace taper {
namespace {

// Items for evaluations come from another seed: never met in training, whatever the number of
// iterations.
constexpr std::uint64_t kHeldOut = 0x5EED0E7A1ull << 20;

std::vector<Prompt> task_items(const std::string& task, std::uint64_t seed,
                               std::span<const std::int64_t> numbers, const ModelFiles& files) {
  const TaskMix mix = TaskMix::from_name(task);
  std::vector<Prompt> list;
  for (const std::int64_t number : numbers) {
    const TaskItem item = make_task_item(mix, seed, static_cast<std::uint64_t>(number));
    const auto ids = files.tokenizer().encode(item.prompt, AddSpecial::kYes);
    list.push_back({{ids.begin(), ids.end()}, item.answer, item.task});
  }
  return list;
}

}  // namespace

std::vector<Prompt> read_prompts(const std::string& file, const PromptReading& how,
                                 const ModelFiles& files) {
  require_input_file(how.option, file);
  PromptEncoder encoder(files, how.chat_template);
  std::vector<Prompt> prompts;
  int too_long = 0;
  for (const PromptItem& item : read_prompt_data(file)) {
    const std::string where = line_text(file, item.line);
    TAPER_VALIDATE(!item.ground_truth.empty(),
                   where << " has no 'ground_truth' (without it every response would count as "
                            "wrong); add it, or remove the line");
    TAPER_VALIDATE(item.form != PromptForm::kText || !item.text.empty(),
                   where << ": the prompt is empty; give it a text, or remove the line");
    Prompt prompt{encoder.encode(item, where), item.ground_truth, item.data_source,
                  item.extra_info};
    if (static_cast<int>(prompt.tokens.size()) > how.max_tokens)
      ++too_long;
    else
      prompts.push_back(std::move(prompt));
  }
  if (too_long > 0)
    TAPER_INFO(path_text(file) << ": " << too_long << " of " << too_long + prompts.size()
                               << " prompts are left out (longer than " << how.max_tokens
                               << " tokens)");
  TAPER_VALIDATE(!prompts.empty(), path_text(file)
                                       << ": all prompts are longer than " << how.max_tokens
                                       << " tokens; " << how.too_long_advice);
  return prompts;
}

void add_prompts(Fingerprint& fingerprint, const std::vector<Prompt>& prompts) {
  fingerprint.add(std::int64_t{std::ssize(prompts)});
  for (const Prompt& p : prompts) {
    fingerprint.add(std::int64_t{std::ssize(p.tokens)})
        .add_all(std::span<const std::int32_t>(p.tokens));
    for (const std::string& text : {p.truth, p.source, p.extra}) fingerprint.add_text(text);
  }
}

std::vector<Prompt> held_out_prompts(const HeldOut& from, const PromptReading& how,
                                     std::uint64_t seed, const ModelFiles& files) {
  if (from.file.empty()) {
    std::vector<std::int64_t> first(static_cast<std::size_t>(from.count));
    std::iota(first.begin(), first.end(), 0);
    return task_items(from.task, seed ^ kHeldOut, first, files);
  }
  auto prompts = read_prompts(from.file, how, files);
  if (from.count > 0 && std::ssize(prompts) > from.count)
    prompts.resize(static_cast<std::size_t>(from.count));
  return prompts;
}

PromptSource::PromptSource(const DataOptions& options, const ModelFiles& files, int max_tokens,
                           std::uint64_t seed)
    : files_(&files), task_(options.task), seed_(seed) {
  const PromptReading how{"Data/Prompts", options.chat_template, max_tokens};
  std::vector<int> sizes;
  for (const std::string& file : options.prompts) {
    auto prompts = read_prompts(file, how, files);
    sizes.push_back(static_cast<int>(prompts.size()));
    std::move(prompts.begin(), prompts.end(), std::back_inserter(training_));
  }
  if (!training_.empty()) mixture_ = PromptMixture(sizes, options.weights, seed);
}

void PromptSource::add_to(Fingerprint& fingerprint) const {
  add_prompts(fingerprint, training_);
}

std::vector<Prompt> PromptSource::training(std::span<const std::int64_t> numbers) const {
  if (training_.empty()) return task_items(task_, seed_, numbers, *files_);
  std::vector<Prompt> list;
  for (const std::int64_t number : numbers)
    list.push_back(training_[mixture_.at(static_cast<std::uint64_t>(number))]);
  return list;
}

}  // namespace taper
