// SPDX-License-Identifier: Apache-2.0
//
// What ranks and reward workers say to each other: one JSON object a line, a request to the
// worker's standard input, one answer to it on its standard output (doc/rewards.md).
//
//   {"id": 17, "reward": "judge", "prompt": "...", "response": "...", "ground_truth": "...", ...}
//   {"id": 17, "score": 0.5, "components": {"style": 0.2}}  or  {"id": 17, "error": "why"}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/Response.hpp"
#include "workers/WorkerPool.hpp"

namespace taper {

// A response and what a judge may want to know of it. Texts are UTF-8.
struct JudgedResponse {
  ResponseId id;
  std::string prompt, response, ground_truth, data_source;
  std::string extra_info;  // a JSON value; empty: none
  std::int64_t prompt_tokens = 0, response_tokens = 0;
  FinishReason finish = FinishReason::kEos;
};

// The members of the request's object after its "id", as JSON text without braces.
std::string request_members(const std::string& reward, const JudgedResponse& r);

// Reads answers: the score, then these components in their order.
AnswerReader answer_reader(const std::vector<std::string>& components);

}  // namespace taper
