// SPDX-License-Identifier: Apache-2.0
#include "driver/PromptEncoder.hpp"

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

std::string place(const std::filesystem::path& file, const PromptItem& item) {
  return file.string() + ":" + std::to_string(item.line);
}

}  // namespace

std::vector<std::int32_t> PromptEncoder::encode(const PromptItem& item, const std::string& where) {
  std::vector<int> ids = item.tokens;
  if (item.form == PromptForm::kText) {
    ids = files_->tokenizer().encode(item.text, AddSpecial::kYes);
  } else if (item.form == PromptForm::kMessages) {
    if (!template_) {
      ChatTemplateOptions options;
      options.family = chat_template_;
      template_ = ChatTemplate::from_model_directory(files_->directory, options);
    }
    ids = files_->tokenizer().encode(template_->render(item.messages, AddGenerationPrompt::kYes),
                                     AddSpecial::kNo);
  }
  TAPER_VALIDATE(!ids.empty(), where << ": the prompt has no tokens (a model needs at least one)");
  for (const int id : ids)
    TAPER_VALIDATE(id >= 0 && id < files_->valid_ids(),
                   where << ": token id " << id << " is unknown (ids of "
                         << files_->directory.string() << " are below " << files_->valid_ids()
                         << ")");
  return {ids.begin(), ids.end()};
}

std::vector<std::vector<std::int32_t>> encode_prompt_file(const std::filesystem::path& file,
                                                          const ModelFiles& files,
                                                          const std::string& chat_template) {
  PromptEncoder encoder(files, chat_template);
  std::vector<std::vector<std::int32_t>> prompts;
  for (const PromptItem& item : read_generate_input(file)) {
    prompts.push_back(encoder.encode(item, place(file, item)));
    TAPER_VALIDATE(static_cast<int>(prompts.back().size()) < files.config.max_positions,
                   place(file, item)
                       << ": the prompt has " << prompts.back().size() << " tokens (the context of "
                       << files.directory.string() << " holds " << files.config.max_positions
                       << ", one must be left for the response); shorten it");
  }
  return prompts;
}

std::vector<std::vector<std::int32_t>> read_token_file(const std::filesystem::path& file,
                                                       const ModelFiles& files) {
  PromptEncoder encoder(files, "auto");
  std::vector<std::vector<std::int32_t>> sequences;
  for (const PromptItem& item : read_generate_input(file)) {
    TAPER_VALIDATE(item.form == PromptForm::kTokens,
                   place(file, item) << ": no 'tokens' (only token ids are scored)");
    sequences.push_back(encoder.encode(item, place(file, item)));
    TAPER_VALIDATE(static_cast<int>(sequences.back().size()) <= files.config.max_positions,
                   place(file, item) << ": " << sequences.back().size()
                                     << " tokens (the context of " << files.directory.string()
                                     << " holds " << files.config.max_positions << ")");
  }
  return sequences;
}

std::string hash_text(const std::vector<std::vector<std::int32_t>>& sequences) {
  std::uint64_t hash = fnv1a("");
  for (const auto& s : sequences) {
    const std::int64_t size = std::ssize(s);
    hash = fnv1a({reinterpret_cast<const char*>(&size), sizeof size}, hash);
    hash = fnv1a({reinterpret_cast<const char*>(s.data()), s.size() * sizeof s[0]}, hash);
  }
  return std::to_string(hash);
}

}  // namespace taper
