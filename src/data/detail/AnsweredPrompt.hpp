// SPDX-License-Identifier: Apache-2.0
//
// Prompts with their answers, as lines of example files have them.
#pragma once

#include <string>

#include "data/SftData.hpp"
#include "data/detail/JsonLine.hpp"

namespace taper::detail {

// The text that the assistant says: `answer`, the value of `key`, is a text or a list with one
// message of the assistant. Throws Error naming file, line and key if it is neither.
std::string read_answer(const JsonLine& line, const nlohmann::ordered_json& answer,
                        const char* key);

// The prompt, which is the value of `key` (a text or a list of messages), with that answer.
SftItem answered(const JsonLine& line, const nlohmann::ordered_json& prompt, const char* key,
                 const std::string& answer);

}  // namespace taper::detail
