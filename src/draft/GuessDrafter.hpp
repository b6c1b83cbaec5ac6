// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/Random.hpp"
#include "base/ReplicaSnapshot.hpp"
#include "comm/Group.hpp"
#include "draft/Acceptance.hpp"
#include "draft/DraftOwners.hpp"
#include "draft/DraftReach.hpp"
#include "draft/EndOrder.hpp"
#include "draft/RecalledResponses.hpp"
#include "draft/TextGuesses.hpp"
#include "engine/Completion.hpp"
#include "engine/GuessModel.hpp"
#include "engine/SamplingOptions.hpp"

namespace taper {

// Guesses that were drafted, and those of them that became tokens.
struct DraftTotals {
  std::int64_t drafted = 0, accepted = 0;
};

// What became of guesses: all numbers are integers and may be summed over ranks.
struct DraftCounts {
  Acceptance acceptance;
  std::array<DraftTotals, kDraftSources> sources{};

  void add(const DraftCounts& other);
};

// Which guesses pay. Packed, they fit into kBits of a control word.
struct DraftLimits {
  // Least probability that a guess and all before it in its draft are right, in 1/kRatioOne, for a
  // sequence of worth 1 (EndOrder). With kNothing or more, nothing is looked up.
  static constexpr int kNothing = kRatioOne - 1;
  int threshold = 0;
  // Tokens that a round of a draft model must be expected to add, for each sequence of the step, in
  // 1/kRatioOne; with kNoRound, there is none.
  static constexpr int kNoRound = kRatioOne - 1;
  int round = 0;

  static constexpr DraftLimits nothing() { return {kNothing, kNoRound}; }
  static constexpr int kBits = 2 * kRatioBits;
  static constexpr DraftLimits unpack(std::uint64_t bits) {
    return {static_cast<int>(bits % kRatioOne), static_cast<int>(bits >> kRatioBits)};
  }
  constexpr std::uint64_t pack() const {
    return static_cast<std::uint64_t>(threshold) | static_cast<std::uint64_t>(round) << kRatioBits;
  }
};

// What the model of a drafter did for the last drafts; of ranks that each have a part of the
// sequences, the most.
struct ModelRounds {
  int rounds = 0;  // that read a token or two of each sequence
  std::int64_t ns = 0;
  std::int64_t reading_ns = 0;  // of rounds that read more, as of sequences that are new to it

  std::int64_t all_ns() const { return ns + reading_ns; }
};

// What a generation waits for: all of its responses, or, in a race, those that are kept, which will
// be the short ones.
enum class WaitsFor { kAll, kKept };

// Drafts of what an interrupted generation had; else of the guesses of texts and, if there is one,
// of a draft model: for each position that which is right most often, as far as has been counted.
class GuessDrafter : public Drafter {
 public:
  // draft_length: tokens per sequence and step, at most. index_bytes: what earlier generations may
  // take.
  GuessDrafter(int draft_length, std::int64_t index_bytes)
      : draft_length_(draft_length), texts_(index_bytes) {}

  // What guesses beside texts from now on; null: nothing. Must outlive its use. With a model,
  // propose() is collective over the group: it draws together, or, if it draws on each rank by
  // itself, for a part of the sequences there, and ranks exchange their drafts.
  void set_model(GuessModel* model) { model_ = model; }

  // What the next generations are expected to repeat; to be the same on all ranks.
  RecalledResponses& recalled() { return recalled_; }
  // Whether the last drafts were of such responses: then they say nothing about guesses.
  bool is_recalling() const { return is_recalling_; }

  // Starts a generation with no sequences, in this group, which must outlive its use. The model is
  // bound to its layout already. end_ids: tokens behind which a response does not go on.
  void begin(const SamplingOptions& sampling, const Group& group, const DraftLimits& limits,
             WaitsFor waits_for = WaitsFor::kAll, std::span<const std::int32_t> end_ids = {});
  // The group, or another one, goes on with other sequences: what only this one has counted does
  // not help until learn().
  void restart(const Group& group, const DraftLimits& limits);
  const DraftLimits& limits() const { return limits_; }
  void set_limits(const DraftLimits& limits) { limits_ = limits; }

  // The generation is over: all counts that this rank speaks for, so that the sum over ranks has
  // each once.
  DraftCounts finish();
  // The responses of the generation, from all replicas in the same order on all ranks, and the
  // counts and ends of all.
  void learn(std::span<const Completion> responses, const DraftCounts& counts,
             const Endings& endings);
  // Whether responses of earlier generations to this prompt are known.
  bool knows(std::span<const std::int32_t> prompt) const { return texts_.knows(prompt); }
  // The tokens of responses that learn() can keep, at most.
  std::int64_t room() const { return texts_.room(); }

  // How far drafts have reached of late, in steps of about as many sequences as the last one,
  // without the time of the model.
  DraftShares reach() const { return known_->reaches[bucket_].shares(); }
  // Looks up from now on what drafts of texts would be if rows cost little, too: reach() counts it
  // by its probability, and steps without looks say nothing. For those who price other layouts, in
  // which rows cost less.
  void explore() { explores_ = true; }

  const ModelRounds& model_rounds() const { return model_rounds_; }
  // What the last drafts took, without the model and the reading of texts of earlier generations.
  std::int64_t look_ns() const { return look_ns_; }
  std::int64_t reading_ns() const { return reading_ns_; }
  // The tokens that the last drafts gave, each by its value beside the mean token of a step.
  double accepted_value() const { return accepted_value_; }
  // The tokens that they were expected to give when they were made.
  double expected_value() const { return expected_value_; }

  std::vector<std::vector<std::int32_t>> propose(std::span<const DraftAsk> asks,
                                                 const DraftRoom& room) override;
  void observe(const Sequence& sequence, int drafted,
               std::span<const std::int32_t> tokens) override;

 private:
  // Of one position: all guesses, some of which will be right.
  struct Position {
    std::vector<Guess> guesses;
    std::size_t best = 0;
    int estimate = 0;  // the probability of the best, in 1/kRatioOne

    const Guess& choice() const { return guesses[best]; }
  };
  // Of the next early token of a sequence, beside the mean token of a step; and the least
  // probability of its guesses that follows from it, in 1/kRatioOne.
  struct Value {
    double of_token = 1;
    int least = 0;
  };
  // A draft in the making, of ask `ask`.
  struct Growth {
    std::size_t ask = 0;
    std::vector<std::int32_t> draft;
    std::int64_t probability = 0;  // that all of it is right, in 1/kRatioOne^2
    Value value;
    bool may_pay = true;  // whether its next token may have a row
  };

  // What is known of earlier generations, and of how far drafts reached.
  struct Known {
    Acceptance acceptance;
    Endings endings;
    std::array<DraftReach, kLengthBuckets> reaches;  // by the number of sequences in a step
  };

  bool speaks() const;
  void count_reach(const ResponseId& id, int drafted, int accepted);
  std::vector<int> estimates_of(const ResponseId& id) const;
  static std::vector<double> beyond(std::span<const int> estimates, int drafted, int accepted);
  template <class What>
  int estimate(const What& what);
  using Drafts = std::vector<std::vector<std::int32_t>>;
  Drafts recall_drafts(std::span<const DraftAsk> asks, int& rows);
  Drafts guess_drafts(std::span<const DraftAsk> asks, const Drafts& recalled,
                      const DraftRoom& room);
  Value value_of(double worth) const;
  void choose(Position& position);
  std::vector<Growth> first_growths(std::span<const DraftAsk> asks, const Drafts& recalled,
                                    Queue queue);
  std::vector<Position> look_ahead(std::span<const DraftAsk> asks,
                                   const std::vector<Growth>& growing);
  bool could_count(const std::vector<Growth>& growing);
  // What is explored: guesses that are, with all before them, more probably right than not.
  static constexpr double kExplored = 0.5;
  bool goes_on(const Growth& growth) const;
  void deal_rows(std::span<const DraftAsk> asks, std::vector<Growth>& grown, int& rows,
                 Drafts& drafts);
  void add_model_guesses(std::span<const DraftAsk> asks, const std::vector<Growth>& growing,
                         std::vector<Position>& positions);
  void share(std::span<const DraftAsk> asks, Drafts& drafts);

  int draft_length_;
  bool explores_ = false;
  RecalledResponses recalled_;
  bool is_recalling_ = false;
  TextGuesses texts_;
  GuessModel* model_ = nullptr;
  const Group* group_ = nullptr;
  bool is_spread_ = false;  // whether each rank of the group drafts for some of its sequences
  double of_mine_ = 1;      // sequences that may have drafts, all beside those of this rank
  WaitsFor waits_for_ = WaitsFor::kAll;
  std::vector<std::int32_t> end_ids_;
  DraftLimits limits_;
  SamplingOptions sampling_;
  ModelRounds model_rounds_;
  std::int64_t look_ns_ = 0, reading_ns_ = 0;
  EndOrder end_order_;
  std::map<ResponseId, std::vector<Position>> asked_;  // of the last propose()
  double accepted_value_ = 0, expected_value_ = 0;
  std::size_t bucket_ = 0;  // of the last propose(), and its sequences that have not been observed
  std::ptrdiff_t unobserved_ = 0;
  DraftOwners owners_;                           // if ranks share the work
  std::map<ResponseId, std::vector<int>> told_;  // estimates of other ranks, for who explores
  std::map<std::pair<RandomPurpose, bool>, Known>
      all_known_;           // by purpose and whether it is greedy
  Known* known_ = nullptr;  // of this generation
  DraftCounts recent_;      // since the last restart; alike on all ranks that do not share the work
  DraftCounts mine_;        // of this generation before, that this rank speaks for
};

}  // namespace taper
