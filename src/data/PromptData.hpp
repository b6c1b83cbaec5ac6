// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "text/ChatTemplate.hpp"

namespace taper {

// One prompt in one of three forms: text, chat messages or token ids.
enum class PromptForm { kText, kMessages, kTokens };

struct PromptItem {
  PromptForm form = PromptForm::kText;
  std::string text;
  Chat chat;
  std::vector<int> tokens;
  std::vector<int> response;  // ids that followed the prompt, as `taper generate` writes them
  std::string data_source;    // names the verifier; may be empty
  std::string ground_truth;   // may be empty; a number or list keeps its JSON spelling
  std::string extra_info;     // any JSON value, as text; may be empty
  int line = 0;               // in the file, from 1
};

// A file of prompts, JSONL, the same for all commands (doc/data.md). Each line has its prompt in
// exactly one form: "prompt" (a text, or chat messages as verl has them), "messages" (a list of
// {"role", "content"}; "tools" may be beside it) or token ids, which are "prompt_tokens" with the
// response's ids in "tokens" beside them, or "tokens" alone. "data_source", "extra_info" and
// "ground_truth" or "reward_model": {"ground_truth": ...} are optional; other keys are ignored.
// Lines of white space are skipped. Throws Error naming file and line.
std::vector<PromptItem> read_prompt_data(const std::filesystem::path& file);

}  // namespace taper
