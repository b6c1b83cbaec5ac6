// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/Plan.hpp"
#include "planner/Snapshot.hpp"
#include "shard/RankGrid.hpp"

namespace taper {

// What a race starts beyond what it keeps (planner/Race.hpp): prompts, and samples of each.
struct Surplus {
  int prompts = 0, samples = 0;

  bool is_none() const { return prompts == 0 && samples == 0; }
};

// A generation as it is known before it starts.
struct Workload {
  std::int64_t iteration = 0;
  int sequences = 0;               // prompts x samples
  int samples = 1;                 // per prompt; each replica that has some reads it once
  std::int64_t prompt_tokens = 0;  // summed over sequences
  int max_new_tokens = 0;
  Surplus surplus;
  int slots_per_rank = 64;       // sequences in flight; a group has the slots of its ranks
  int step_rows = 256;           // tokens per step and replica
  std::map<int, int> kv_blocks;  // blocks of a replica by TP degree; empty: never short
  int block_size = 64;
};

// One response after the generation. `row` is its place in the order of submission.
struct Outcome {
  std::int64_t row = 0;
  std::int32_t prompt = 0;
  std::int32_t response = 0;
  bool aborted = false;  // ended neither by itself nor at the limit
};

// What a step did.
struct StepContent {
  int new_tokens = 0;  // without guesses
  int sequences = 0;
  int drafted = 0;           // guesses
  std::int64_t context = 0;  // summed over the sequences after the step
};

// Who chooses the layouts of a generation: snapshot in, decision out. Pure: no clock, no
// communication; equal calls give equal answers. Every rank keeps one and begins and finishes with
// the same arguments; all leaders make the same calls in between. A rank that becomes a leader, and
// at the end all that were none, first load() what a leader has saved.
//
//   layout = planner.begin(workload);
//   per consultation:  decision = planner.decide(snapshot);
//     if decision.act, at the meeting:  c = planner.confirm(decision.plan, snapshot, sequences);
//     if c.act, afterwards:             planner.switched(decision.plan, measured_ns);
//   planner.finish(outcomes, elapsed_ns);
class LayoutPlanner {
 public:
  virtual ~LayoutPlanner() = default;

  // Starts a generation; the layout it starts in.
  virtual Layout begin(const Workload& workload) = 0;

  // What to do now. Consultations must come in order.
  virtual Decision decide(const Snapshot& snapshot) = 0;

  // Prices a plan again with the exact sequences of the groups that it changes (all sequences of
  // those groups, ids ascending); snapshot: the one decided on. If it acts, `moves` says where
  // each sequence goes.
  virtual Confirmation confirm(const Plan& plan, const Snapshot& snapshot,
                               std::span<const SequenceState> sequences) = 0;

  // The plan was carried out, in the time measured (the largest of the ranks').
  virtual void switched(const Plan&, std::int64_t /*measured_ns*/) {}

  // Ends a generation. Outcomes of all its sequences, in order of submission.
  virtual void finish(std::span<const Outcome>, std::int64_t /*elapsed_ns*/) {}

  // Predicted time of one step of a group; what a leader divides its measured step times by
  // (ReplicaSnapshot::speed). 0: nothing is known of step times.
  virtual std::int64_t step_ns(const LayoutGroup&, const StepContent&) const { return 0; }

  // Time of a generation by what the profile says of it, as past generations have shown,
  // in 1/kRatioOne; 0: nothing is known of step times.
  virtual int scale() const { return 0; }

  // Everything learned and the state of the present generation, for checkpoints and for ranks that
  // become leaders: 8-byte integers, as ByteWriter packs them. load() throws Error if the bytes are
  // not of this version, as require_loadable() does, which changes nothing.
  virtual std::string save() const { return {}; }
  virtual void load(std::string_view) {}
  virtual void require_loadable(std::string_view) const {}
};

// One layout for ever.
class StaticPlanner : public LayoutPlanner {
 public:
  explicit StaticPlanner(Layout layout) : layout_(std::move(layout)) {}

  Layout begin(const Workload&) override { return layout_; }
  Decision decide(const Snapshot& snapshot) override {
    return {false, stay_in(snapshot.layout), {}, 0, "stay", 0};
  }
  Confirmation confirm(const Plan&, const Snapshot&, std::span<const SequenceState>) override {
    return {};
  }

 private:
  Layout layout_;
};

}  // namespace taper
