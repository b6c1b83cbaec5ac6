// SPDX-License-Identifier: Apache-2.0
//
// What engine, policy, training and files all say of a response.
#pragma once

#include <compare>
#include <cstdint>

namespace taper {

// Which response of an iteration: the prompt it answers, counted from 0, and which of its samples.
struct ResponseId {
  std::int64_t prompt = 0;
  int sample = 0;
  friend auto operator<=>(const ResponseId&, const ResponseId&) = default;
};

// What the random numbers of a prompt's responses depend on, besides the seed.
struct PromptKey {
  std::uint64_t iteration = 0, ordinal = 0;
};

// Why a response ended. The values stand in files.
enum class FinishReason : std::int8_t { kEos = 0, kStop = 1, kLength = 2, kAbort = 3 };

// "stop", "length" or "abort", as inference servers name them.
const char* to_string(FinishReason reason);

// From response token `first_token` on, a response was produced by this replica at this
// tensor-parallel degree. Files hold the three integers as a row.
struct ProducedBy {
  std::int32_t first_token = 0;
  std::int32_t tp = 1;
  std::int32_t replica = 0;
  friend bool operator==(const ProducedBy&, const ProducedBy&) = default;
};

// Responses are counted by length, bucket i being [2^i, 2^(i+1)) tokens; 0 tokens count as 1, and
// the last bucket has no end.
inline constexpr int kLengthBuckets = 20;
int length_bucket(std::int64_t response);

}  // namespace taper
