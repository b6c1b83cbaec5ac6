// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Random.hpp"
#include "base/Response.hpp"

namespace taper {

// How tokens are drawn, the same for all requests of a generation.
struct SamplingOptions {
  float temperature = 1.0f;  // 0: greedy (log-probs are then reported at temperature 1)
  int top_k = 0;             // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
  std::uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::kSampling;
  std::uint64_t iteration = 0;
  float repetition_penalty = 1.0f;  // 1: off; applied before the temperature

  bool truncates() const { return top_k > 0 || top_p < 1.0f || min_p > 0.0f; }
  std::vector<std::string> problems() const;
};

// When a response ends besides reaching its limit. Without any, its tokens never end it.
struct StopOptions {
  std::vector<std::int32_t> ids;     // the stopping token belongs to the response
  std::vector<std::string> strings;  // matched on the bytes of the response, across token borders
  std::vector<std::string> token_bytes;  // by id; needed if there are strings
};

// A prompt with all its samples.
struct Request {
  // Id of the first sample, the others are numbered on from it; ids are keys of random numbers.
  ResponseId first;
  int samples = 1;
  std::vector<std::int32_t> prompt;
  int max_new_tokens = 0;
  // Token limits of the samples, where their ends are given: a sample that reaches its own, below
  // max_new_tokens, has stopped. If empty, max_new_tokens is the only limit.
  std::vector<std::int32_t> pinned = {};

  // The request for `count` of the samples from the one with index `from` on.
  Request part(int from, int count) const;
};

// One finished response.
struct Completion {
  ResponseId id;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  std::vector<float> log_probs;  // per response token, of the full softmax at the temperature
  std::vector<float> kept_mass;  // probability that top-k, top-p and min-p left; 1 without them
  FinishReason finish = FinishReason::kEos;
  int preemptions = 0;
  std::vector<ProducedBy> spans;
};

}  // namespace taper
