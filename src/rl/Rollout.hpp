// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Response.hpp"
#include "comm/Group.hpp"

namespace taper {

// One response with all that training needs of it.
struct Sample {
  std::int64_t ordinal = 0;  // request within the iteration; samples of one request are a group
  int sample = 0;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  std::vector<float> log_probs;  // per response token, by the rollout
  std::vector<float> kept_mass;
  std::vector<float> ref_log_probs;  // by the reference model; empty without one
  FinishReason finish = FinishReason::kEos;
  std::vector<ProducedBy> spans;  // of the response, each produced in one layout
  std::vector<float> rewards;     // by component; NaN where one has none
  float score = 0.0f;             // weighted sum of the rewards
  bool dropped = false;           // has no score: neither trained nor counted in its group
  float advantage = 0.0f;

  int length() const { return static_cast<int>(prompt.size() + response.size()); }
};

// All samples of an iteration in the order of (ordinal, sample), on every rank, whoever generated
// them. `mine` are those of this rank; only one rank of each replica brings them. Collective over
// `group`.
std::vector<Sample> gather_samples(const Group& group, const std::vector<Sample>& mine);

}  // namespace taper
