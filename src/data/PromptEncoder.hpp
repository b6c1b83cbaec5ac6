// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/PromptData.hpp"
#include "instance/ModelFiles.hpp"

namespace taper {

// Throws Error naming the place `where` for an id that the model does not have.
void require_known_ids(std::span<const int> ids, const ModelFiles& files, const std::string& where);

// Prompts of any form as token ids of one model.
class PromptEncoder {
 public:
  // chat_template: "auto" or a file (ChatTemplate::of_model). It is looked up at the first chat.
  PromptEncoder(const ModelFiles& files, std::string chat_template)
      : files_(&files), chat_template_(std::move(chat_template)) {}

  // `where` names the prompt in errors. Throws Error for ids that the model does not have, and
  // for a prompt without tokens.
  std::vector<std::int32_t> encode(const PromptItem& item, const std::string& where);

 private:
  const ModelFiles* files_;
  std::string chat_template_;
  std::optional<ChatTemplate> template_;
};

// The prompts of a file for `taper generate`. Throws Error naming file and line of a prompt that
// leaves no room for a response in the model's context.
std::vector<std::vector<std::int32_t>> encode_prompt_file(const std::filesystem::path& file,
                                                          const ModelFiles& files,
                                                          const std::string& chat_template);

// What `taper score` works on. prompt_lengths[i] leading tokens of sequences[i] are a prompt; 0: it
// is one text, of which all but the first token are scored.
struct ScoreInput {
  std::vector<std::vector<std::int32_t>> sequences;
  std::vector<int> prompt_lengths;
};

// Lines of {"prompt_tokens": [ids], "tokens": [ids of the response]}, as `taper generate` writes
// them, or {"tokens": [ids]}. Throws Error naming file and line of what does not fit the model.
ScoreInput read_score_input(const std::filesystem::path& file, const ModelFiles& files);

// For comparing sequences between ranks: equal texts for equal sequences.
std::string hash_text(const std::vector<std::vector<std::int32_t>>& sequences);

}  // namespace taper
