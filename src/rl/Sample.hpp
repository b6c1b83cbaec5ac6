// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "base/Response.hpp"

namespace taper {

// One response with all that training needs of it.
struct Sample {
  ResponseId id;  // samples of one prompt are a group
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  std::vector<float> log_probs;  // per response token, by the rollout
  std::vector<float> kept_mass;  // per response token: probability that sampling left (Completion)
  std::vector<float> ref_log_probs;  // by the reference model; empty without one
  FinishReason finish = FinishReason::kEos;
  std::vector<ProducedBy> spans;  // of the response, each produced in one layout
  std::vector<float> rewards;     // by component; NaN if one has none
  float score = 0.0f;             // weighted sum of the components
  float unshaped_score = 0.0f;    // that sum without components that only shape (is_shaping())
  bool unscored = false;          // has no score: neither trained nor counted in its group
  float reward = 0.0f;            // the (adjusted) score less KL penalties: what advantages see
  // Per response token, as all that follows.
  std::vector<float> advantages;
  std::vector<float> values;   // of the state before the token, by the critic; empty without one
  std::vector<float> returns;  // what the critic learns: advantage (before whitening) + value
  std::vector<std::uint8_t> mask;  // 0: the token carries no loss; empty: all carry one
  std::vector<float> correction;   // weight of the policy loss (RolloutCorrection.hpp); empty: 1

  // As samples go from rank to rank (base/Packing.hpp).
  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.id, self.finish, self.unscored, self.score, self.unshaped_score,
                    self.reward, self.rewards, self.prompt, self.response, self.log_probs,
                    self.kept_mass, self.ref_log_probs, self.spans, self.advantages, self.values,
                    self.returns, self.mask, self.correction);
  }

  bool carries_loss(std::size_t token) const { return mask.empty() || mask[token] != 0; }
  std::int64_t loss_tokens() const;
  // Of the response tokens; the advantage of the response if all have the same.
  double mean_advantage() const;

  int length() const { return static_cast<int>(prompt.size() + response.size()); }
};

}  // namespace taper
