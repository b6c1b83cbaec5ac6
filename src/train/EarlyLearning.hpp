// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "comm/Mailbox.hpp"
#include "reward/Judge.hpp"
#include "rollout/Consultation.hpp"
#include "train/Policy.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// The policy learns from a prompt as soon as all responses to it have ended, on ranks that have
// nothing to generate, while others generate (the stream trainer of RollPacker, Gao et al., arXiv
// 2509.21009): gradients are added up, and no weight changes before the generation is over. A
// replica learns early only from what it would have had to learn anyway, prompts number
// replica + k * replicas of the first mini-batch. What it does not get to is dealt to all later, as
// ever.
class EarlyLearning final : public IdleWork {
 public:
  // Refers to all of these. Not collective.
  EarlyLearning(const RunOptions& options, const Ranks& ranks, const Placement& placement,
                Policy& policy, Judge& judge);

  // Begins an iteration. Not collective.
  void begin();
  // A response that ended on this rank. Not collective.
  void add(const Completion& ended);
  // Of ranks that generate, in this order while others still generate. The first is asked of the
  // leader of a replica with `tp` ranks; the second is collective over these.
  bool is_ready(int tp) override;
  void work() override;
  // The generation is over, on ranks that generate; the others, which learn, do so until then.
  // Collective over the world.
  void end();

  // Response tokens learned from in this iteration, on all replicas; after end().
  std::int64_t tokens() const { return tokens_; }

 private:
  struct Prompt {
    std::vector<Sample> samples;
    std::deque<Range> bundles;  // to be learned from
  };
  // The rank that collects the responses to a prompt.
  int home_of(std::int64_t prompt) const;
  // Ranks of a replica that learns.
  const Group& replica() const { return policy_.model()->train_parallel().group(); }
  bool is_home() const { return policy_.model() != nullptr && replica().rank() == 0; }
  bool read_mail();
  bool has_work() const { return !current_.bundles.empty() || !complete_.empty(); }
  void wait_for_mail();
  void work_until_over();
  void begin_prompt(std::vector<Sample> samples);

  const RunOptions& options_;
  const Ranks& ranks_;
  const ModelLayout policy_layout_;
  const RankBlock generation_;
  Policy& policy_;
  Judge& judge_;
  Mailbox mail_;
  std::map<std::int64_t, std::vector<Sample>> incomplete_;  // by prompts, at home
  std::deque<std::vector<Sample>> complete_;                // likewise
  Prompt current_;                                          // on all ranks of the replica
  bool is_over_ = false;
  std::int64_t tokens_ = 0;
};

}  // namespace taper
