// SPDX-License-Identifier: Apache-2.0
//
// Response lengths by described laws, to judge a planner where no run has been.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace taper {

enum class LengthLaw {
  kLogNormal,  // a natural tail
  kHeavyTail,  // 10.85 % of the responses are longer than half the limit
  kNarrow,     // no tail: all within 2 % of each other
  kBimodal,    // short answers and long ones
  kTruncated,  // all reach the limit
  kDrifting,   // log-normal, longer by 7 % each iteration, then shorter again
  kStraggler,  // short answers, and one in 32 that goes on until it is cut, as loops do
};
const char* to_string(LengthLaw law);
const std::vector<LengthLaw>& all_length_laws();
std::vector<std::pair<std::string, LengthLaw>> named_length_laws();  // for options
std::optional<LengthLaw> length_law(const std::string& name);        // if it is one

// Lengths of one iteration, 1 to limit.
std::vector<int> draw_lengths(LengthLaw law, std::uint64_t seed, std::int64_t iteration, int count,
                              int limit);

// Log-normal lengths of which a given share exceeds a number of tokens. The responses to a prompt
// may be alike: `likeness` is the correlation of their logarithms.
struct TailLaw {
  int long_tokens = 8192;
  double long_share = 0.1085;  // longer than that
  double spread = 1.1;         // standard deviation of the logarithm
  double likeness = 0;         // 0 to 1

  // Share of the responses that are longer than so many tokens (below the limit).
  double share_above(double tokens) const;
};

// Lengths of one iteration, 1 to limit, the samples of a prompt one after the other.
std::vector<int> draw_lengths(const TailLaw& law, std::uint64_t seed, std::int64_t iteration,
                              int prompts, int samples, int limit);

}  // namespace taper
