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

namespace taper {

// A response and what a judge may want to know of it. Texts are UTF-8.
struct JudgedResponse {
  std::int64_t index = 0;  // of the prompt in the iteration
  int sample = 0;
  std::string prompt, response, ground_truth, data_source;
  std::string extra_info;  // a JSON value; empty: none
  std::int64_t prompt_tokens = 0, response_tokens = 0;
  FinishReason finish = FinishReason::kEos;
};

// With its line feed.
std::string request_line(std::int64_t id, const std::string& reward, const JudgedResponse& r);

struct WorkerAnswer {
  enum class Meaning {
    kScore,
    kError,    // the worker says that it cannot judge this response
    kNonsense  // no answer to this request: question and answers are out of step
  };
  Meaning meaning = Meaning::kNonsense;
  double score = 0.0;
  std::vector<double> components;  // in the order asked for
  std::string problem;             // where it is no score
};

// Reads a line, without its line feed, as the answer to request `id`. Never throws for what a
// worker wrote.
WorkerAnswer read_answer(std::string_view line, std::int64_t id,
                         const std::vector<std::string>& components);

}  // namespace taper
