// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/LatencyProfile.hpp"
#include "planner/Plan.hpp"
#include "planner/Snapshot.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

enum class PolicyMode {
  kStatic,  // one layout for the whole run
  kAdvise,  // decide() says what it would do; act is never set
  kAdaptive,
};

struct PolicyOptions {
  static constexpr int kLeastScenarios = 32, kMostScenarios = 64;

  PolicyMode mode = PolicyMode::kAdaptive;
  std::vector<int> degrees;  // TP degrees that may be used; empty: those of profile and chain
  std::string initial;       // layout at the start of each generation; empty: chosen
  // Groups of different degrees too; uniform layouts only where a sample of the ranks is priced.
  bool mixed_groups = true;
  bool repack = true;      // sequences may change replica without a change of degree
  int max_switches = 64;   // in one generation
  int scenarios = 48;      // of lengths, within the bounds above
  std::uint64_t seed = 0;  // of the scenarios
  int low_percent = 7;     // a switch must save time at this quantile of the scenarios
  // Spending on switches stays below this share of the elapsed time plus the savings realised.
  std::int64_t budget_ppm = 10000;
  // Cumulative loss against the best static layout, of the generation time, that ends switching.
  std::int64_t fallback_ppm = 5000;
  bool look_ahead = true;  // false: only "stay" and "now" are compared, the myopic rule
  int half_life = 3;       // iterations after which lengths count half
  std::int64_t consult_ns = 25'000'000;  // period of consultation: the later of this ...
  int consult_steps = 8;                 // ... and so many steps

  std::vector<std::string> problems() const;
};

// A generation as it is known before it starts.
struct Workload {
  std::int64_t iteration = 0;
  int sequences = 0;               // prompts x samples
  int samples = 1;                 // per prompt; each replica that has some reads it once
  std::int64_t prompt_tokens = 0;  // summed over sequences
  int max_new_tokens = 0;
  int slots_per_rank = 64;       // sequences in flight; a group has the slots of its ranks
  int step_rows = 256;           // tokens per step and replica
  std::map<int, int> kv_blocks;  // blocks of a replica by TP degree; empty: never short
  int block_size = 64;
};

// One response after the generation. `sequence` is its place in the order of submission.
struct Outcome {
  std::int64_t sequence = 0;
  std::int32_t prompt = 0;
  std::int32_t response = 0;
  bool aborted = false;  // ended neither by itself nor at the limit
};

// Chooses layouts: snapshot in, decision out. Pure: no clock, no communication; equal calls give
// equal answers. Every rank keeps one and begins and finishes with the same arguments; all leaders
// make the same calls in between. A rank that becomes a leader, and at the end all that were none,
// first load() what a leader has saved.
//
//   layout = policy.begin(workload);
//   per consultation:  decision = policy.decide(snapshot);
//     if decision.act, at the meeting:  c = policy.confirm(decision.plan, snapshot, sequences);
//     if c.act, afterwards:             policy.switched(decision.plan, measured_ns);
//   policy.finish(outcomes, elapsed_ns);
class Policy {
 public:
  // Throws Error where the options have problems or the profile lacks a degree.
  Policy(const LatencyProfile& profile, const DivisorChain& chain, const PolicyOptions& options);
  ~Policy();
  Policy(Policy&&) noexcept;

  // Starts a generation; the layout it starts in.
  Layout begin(const Workload& workload);

  // What to do now. Consultations must come in order.
  Decision decide(const Snapshot& snapshot);

  // Prices a plan again with the exact sequences of the groups that it changes (all sequences of
  // those groups, ids ascending); snapshot: the one decided on. Where it acts, `moves` says where
  // each sequence goes.
  Confirmation confirm(const Plan& plan, const Snapshot& snapshot,
                       std::span<const SequenceState> sequences);

  // The plan was carried out, in the time measured (the largest of the ranks').
  void switched(const Plan& plan, std::int64_t measured_ns);

  // Ends a generation. Outcomes of all its sequences, in order of submission.
  void finish(std::span<const Outcome> outcomes, std::int64_t elapsed_ns);

  // Predicted time of one step of a group; what a leader divides its measured step times by
  // (ReplicaSnapshot::speed).
  std::int64_t step_ns(const LayoutGroup& group, int new_tokens, int sequences,
                       std::int64_t context) const;

  // Time of a generation by what the profile says of it, as past generations have shown, in 1/1024.
  int scale() const;

  // Everything learned and the state of the present generation, for checkpoints and for ranks that
  // become leaders. load() throws Error where the words are not of this version.
  std::vector<std::int64_t> save() const;
  void load(std::span<const std::int64_t> words);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taper
