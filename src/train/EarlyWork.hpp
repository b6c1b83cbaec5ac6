// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/Mailbox.hpp"
#include "reward/Judge.hpp"
#include "rl/ModelCalls.hpp"
#include "rollout/Consultation.hpp"
#include "train/EarlyPrompts.hpp"
#include "train/Policy.hpp"
#include "train/RunOptions.hpp"

namespace taper {

// What ranks that have nothing to generate do with responses that have ended, while others
// generate (Gao et al., arXiv 2509.21009):
//
// - models that add figures, such as reward models and the reference, score them;
// - with Training/Early Learning the policy learns from a prompt as soon as all responses to it
//   have ended and have all figures: gradients are added up, and no weight changes before the
//   generation is over.
//
// Replica k of a model works at prompts number k + i * replicas only, which is about what would
// be its share later; learning at those of the first mini-batch. What is not done in time is done
// later, as without early work. Which part was done early changes no bit.
class EarlyWork final : public IdleWork {
 public:
  // `scoring`: what the models do that score, in the same order on all ranks. On a rank that
  // several models are on, all have replicas of the same ranks. Refers to all else. Not collective.
  EarlyWork(const RunOptions& options, const Ranks& ranks, const Placement& placement,
            Policy& policy, Judge& judge, std::vector<ModelCall> scoring);

  // `kl_coef`: of the KL in the reward, in this iteration. Not collective.
  void begin_iteration(double kl_coef);
  // Begins one of its generations. Not collective.
  void begin();
  // A response that ended on this rank. Not collective.
  void add(const Completion& ended);
  // Responses whose rewards were missing may have them now: to be called now and then on ranks that
  // generate. Not collective.
  void follow_commands();
  // Of ranks that generate, in this order while others still generate. The first is asked of the
  // leader of a replica with `tp` ranks; the second is collective over these.
  bool is_ready(int tp) override;
  void work() override;
  // The generation is over, on ranks that generate; the others work until then. Gives samples that
  // ended on this rank the figures that they have got. Collective over the world.
  void end(std::vector<Sample>& samples);

  // Whether there is a model that scores.
  bool scores() const { return !scoring_.empty(); }
  // Both of all ranks in this iteration, after end(): response tokens that were learned from, and
  // the share of figures that were added early.
  std::int64_t tokens() const { return all_.tokens; }
  double scored_share() const;

 private:
  struct Counts {
    std::int64_t tokens = 0, scores = 0, ended = 0;  // learned from; figures; responses
  };
  struct Letter;
  struct Piece;
  struct Waiting {
    int call = 0;    // of the model
    int source = 0;  // the rank where it ended
    Sample sample;
  };
  // The first rank of the replica that works at a prompt.
  static int home_of(const ModelLayout& layout, std::int64_t prompt);
  bool is_home() const { return replica_ != nullptr && replica_->rank() == 0; }
  bool is_learned_early(std::int64_t prompt) const;
  void send(int to, const Letter& letter);
  void read(const std::string& message);
  bool read_mail();
  bool has_work() const;
  Piece next_piece();
  void score(Piece piece);
  void learn(std::vector<Sample> prompt);
  void wait_for_mail();
  void work_until_over();

  const RunOptions& options_;
  const Ranks& ranks_;
  const ModelLayout policy_layout_;
  const RankBlock generation_;
  Policy& policy_;
  Judge& judge_;
  const std::vector<ModelCall> scoring_;
  const int piece_tokens_;  // about as many are scored in one piece
  // The ranks of this one's replica, of every model that is here and works early; null if none is.
  const Group* replica_ = nullptr;
  std::set<int> homes_;  // first ranks of all replicas
  Mailbox mail_;
  double kl_coef_ = 0.0;
  std::list<Waiting> waiting_;               // at home: to be scored, as they came
  std::vector<int> sources_;                 // at home: of the piece that is scored
  EarlyPrompts prompts_;                     // at home: to be learned from
  std::vector<Sample> learned_;              // of a prompt, on all ranks of the replica,
  std::deque<Range> bundles_;                // of which these are to be learned from
  std::map<ResponseId, Sample> unanswered_;  // ended here, while commands judge them
  // Of responses that ended here: figures with the numbers of their calls.
  std::map<ResponseId, std::vector<std::pair<int, std::vector<float>>>> found_;
  bool is_over_ = false;
  Counts here_, all_;  // on this rank, and on all after end()
};

// Throws Error if models that are to work early share a rank, but not the ranks of a replica.
void require_equal_replicas(const RunOptions& options, const Placement& placement);
// Of models that are to work early and have no chance to, in a job of so many ranks.
std::vector<std::string> early_work_warnings(const RunOptions& options, const Placement& placement,
                                             int ranks);

}  // namespace taper
