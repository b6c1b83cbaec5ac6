// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "data/SftData.hpp"

namespace taper {

// Two responses to one prompt, of which the first was preferred.
struct PreferenceItem {
  SftItem chosen, rejected;  // each the prompt with its response; of one form
  double margin = 0.0;       // by which the reward of the chosen one is to be larger
  int line = 0;              // in the file, from 1
};

// A file of preference pairs, JSONL (doc/reward-model.md). Each line has a prompt ("prompt": a text
// or a list of messages, or "messages") with "chosen" and "rejected" (texts, or lists with one
// message of the assistant); or "chosen" and "rejected" alone, whole chats as lists of messages
// that end with the assistant's; or "prompt_tokens", "chosen_tokens" and "rejected_tokens" (ids).
// "margin", a number, is optional; other keys are ignored. Throws Error naming file and line, also
// if a response is empty or both are the same.
std::vector<PreferenceItem> read_preference_data(const std::filesystem::path& file);

}  // namespace taper
