// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/StepModel.hpp"

namespace taper {

// A sequence of a simulated generation.
struct SimulatedSequence {
  std::int64_t id = 0;
  std::int32_t context = 0;  // positions computed; 0 while it waits
  std::int32_t prompt = 0;
  std::int32_t response = 0;   // tokens so far
  std::int32_t remaining = 0;  // tokens to come, at least 1
  std::int32_t to_read = 0;    // positions to compute when it is admitted
};

// One replica, token by token, but in strides from one end of a sequence to the next: the time of a
// token of each sequence is linear in the context between them, so the middle of a stride stands
// for all of it.
class PlayedReplica {
 public:
  // Limit of running sequences.
  PlayedReplica(const StepCurve& curve, int max_running, std::int64_t clock_ns)
      : curve_(&curve), max_running_(max_running), clock_(clock_ns) {}

  void reserve(std::size_t sequences) { items_.reserve(sequences); }
  // Running from the start if its context is there, else waiting, in the order of the calls.
  void add(const SimulatedSequence& sequence);
  void start();  // after the last add
  void delay(std::int64_t ns) { clock_ += ns; }

  // Steps until the clock passes `until` or nothing is left. ends, if given, receives the times
  // at which sequences ended.
  void advance(std::int64_t until, std::vector<std::int64_t>* ends = nullptr);
  void finish(std::vector<std::int64_t>* ends = nullptr) {
    advance(std::numeric_limits<std::int64_t>::max(), ends);
  }

  int running() const { return static_cast<int>(items_.size()); }
  int waiting() const { return static_cast<int>(queue_.size() - next_); }
  int alive() const { return running() + waiting(); }
  std::int64_t ended() const { return ended_; }
  std::int64_t context() const { return offsets_ + running() * counter_; }
  std::int64_t clock() const { return clock_; }
  // The next step, without drafts; 0 if idle.
  std::int64_t step_ns() const { return curve_->decode_ns(running(), context()); }
  DraftShares drafts() const { return curve_->drafts(running()); }

  // All sequences as they are now: running, then waiting.
  std::vector<SimulatedSequence> sequences() const;

 private:
  struct Item {
    std::int64_t end = 0;     // of the counter, when the sequence ends
    std::int64_t offset = 0;  // context = offset + counter
    std::int64_t id = 0;
    std::int32_t prompt = 0;
    std::int32_t final_length = 0;  // of the response
  };
  Item item_of(const SimulatedSequence& sequence) const;
  void admit();

  const StepCurve* curve_;
  int max_running_;
  std::int64_t clock_;
  std::int64_t counter_ = 0;  // tokens of each sequence made
  std::int64_t offsets_ = 0;  // summed
  std::int64_t ended_ = 0;
  std::vector<Item> items_;  // running, the one that ends next at the back
  std::vector<SimulatedSequence> queue_;
  std::size_t next_ = 0;  // of the queue
};

}  // namespace taper
