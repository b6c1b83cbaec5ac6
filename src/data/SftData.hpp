// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "data/PromptData.hpp"
#include "text/ChatTemplate.hpp"

namespace taper {

// One example of supervised fine-tuning: a prompt and what is to be said to it, in one of three
// forms.
struct SftItem {
  PromptForm form = PromptForm::kText;
  std::string prompt, response;  // kText
  Chat chat;                     // kMessages
  std::size_t first_answer = 0;  // of its messages: what the assistant says before is context
  std::vector<int> prompt_tokens, response_tokens;  // kTokens
  int line = 0;                                     // in the file, from 1
};

// A file of examples, JSONL (doc/sft.md). Each line is {"messages": [...]}, a chat in which the
// assistant speaks; {"prompt": ..., "response": ...} ("completion" is the same), where the prompt
// is a text or a list of messages and the response a text (or, as TRL has it, a list with one
// message of the assistant); or {"prompt_tokens": [ids], "tokens": [ids of the response]}, as
// `taper generate` writes them. Other keys are ignored. Throws Error naming file and line.
std::vector<SftItem> read_sft_data(const std::filesystem::path& file);

}  // namespace taper
