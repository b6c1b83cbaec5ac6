// SPDX-License-Identifier: Apache-2.0
#include "data/PromptEncoder.hpp"

#include "base/Error.hpp"
#include "base/Fingerprint.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// The template knows what is wrong with a chat, but not where it stands.
std::string render(const ChatTemplate& chat, const PromptItem& item, const std::string& where) {
  try {
    return chat.render(item.chat, AddGenerationPrompt::kYes);
  } catch (const Error& error) {
    TAPER_FAIL(error.code(), where << ": " << error.what());
  }
}

}  // namespace

void require_known_ids(std::span<const int> ids, const ModelFiles& files,
                       const std::string& where) {
  for (const int id : ids)
    TAPER_VALIDATE(id >= 0 && id < files.valid_ids(),
                   where << ": token id " << id << " is unknown (ids of "
                         << path_text(files.directory) << " are below " << files.valid_ids()
                         << ")");
}

std::vector<std::int32_t> PromptEncoder::encode(const PromptItem& item, const std::string& where) {
  std::vector<int> ids = item.tokens;
  if (item.form == PromptForm::kText) {
    ids = files_->tokenizer().encode(item.text, AddSpecial::kYes);
  } else if (item.form == PromptForm::kMessages) {
    if (!template_) template_ = ChatTemplate::of_model(files_->directory, chat_template_);
    ids = files_->tokenizer().encode(render(*template_, item, where), AddSpecial::kNo);
  }
  TAPER_VALIDATE(!ids.empty(),
                 where << ": the prompt has no tokens (a model needs at least one); give it a "
                          "text, or remove the line");
  require_known_ids(ids, *files_, where);
  return {ids.begin(), ids.end()};
}

std::vector<std::vector<std::int32_t>> encode_prompt_file(const std::filesystem::path& file,
                                                          const ModelFiles& files,
                                                          const std::string& chat_template) {
  PromptEncoder encoder(files, chat_template);
  std::vector<std::vector<std::int32_t>> prompts;
  for (const PromptItem& item : read_prompt_data(file)) {
    const std::string where = line_text(file, item.line);
    prompts.push_back(encoder.encode(item, where));
    TAPER_VALIDATE(static_cast<int>(prompts.back().size()) < files.config.max_positions,
                   where << ": the prompt has " << prompts.back().size()
                         << " tokens (the context of " << path_text(files.directory) << " holds "
                         << files.config.max_positions
                         << ", one must be left for the response); shorten it");
  }
  return prompts;
}

ScoreInput read_score_input(const std::filesystem::path& file, const ModelFiles& files) {
  ScoreInput input;
  for (const PromptItem& item : read_prompt_data(file)) {
    const std::string where = line_text(file, item.line);
    TAPER_VALIDATE(
        item.form == PromptForm::kTokens,
        where
            << ": no 'tokens' (only token ids are scored); add them: the output of taper generate "
               "has them");
    std::vector<int> ids = item.tokens;
    ids.insert(ids.end(), item.response.begin(), item.response.end());
    require_known_ids(ids, files, where);
    TAPER_VALIDATE(static_cast<int>(ids.size()) <= files.config.max_positions,
                   where << ": " << ids.size() << " tokens (the context of "
                         << path_text(files.directory) << " holds " << files.config.max_positions
                         << "); shorten it");
    input.sequences.emplace_back(ids.begin(), ids.end());
    input.prompt_lengths.push_back(item.response.empty() ? 0
                                                         : static_cast<int>(item.tokens.size()));
  }
  return input;
}

std::string hash_text(const std::vector<std::vector<std::int32_t>>& sequences) {
  Fingerprint hash;
  for (const auto& s : sequences)
    hash.add(std::int64_t{std::ssize(s)}).add_all(std::span<const std::int32_t>(s));
  return std::to_string(hash.value());
}

}  // namespace taper
