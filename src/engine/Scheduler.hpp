// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <vector>

#include "engine/Sequence.hpp"
#include "kvcache/BlockManager.hpp"

namespace taper {

struct SchedulerOptions {
  int max_running = 64;     // sequences in flight
  int max_step_rows = 256;  // new tokens per step, decode and prefill together
  int block_size = 64;      // positions per block
};

// A part of a step: the next `count` tokens of a sequence, the last `drafted` of them draft tokens.
struct Work {
  Sequence* sequence = nullptr;
  int count = 0;
  int drafted = 0;

  bool finishes() const { return sequence->computed + count == sequence->length(); }
  // Computes the last position of a response, and nothing else but draft tokens.
  bool decodes() const {
    return count - drafted == 1 && sequence->length() - drafted > sequence->prompt_length &&
           finishes();
  }
};

// Which tokens the next step computes: continuous batching with chunked prefill, and youngest-first
// preemption by recompute when blocks run out. A pure function of the tokens seen so far and the
// number of blocks, so all ranks of a group schedule alike.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, int blocks);

  // Takes over the sequences of a change of layout: `running` oldest first, with their blocks in
  // this layout; `waiting` in order, without blocks.
  void adopt(std::list<Sequence> running, std::deque<Sequence> waiting);

  // Queues a sequence. Throws Error if the cache could not hold it alone.
  void submit(Sequence sequence);
  bool idle() const { return running_.empty() && waiting_.empty(); }

  // The work of the next step, with blocks assigned. Empty only when idle.
  std::vector<Work> next_step();
  // Puts a sample of the prompt `parent` into the running set, sharing full blocks. Returns
  // the block to copy the parent's last, partly filled block into, or -1. If no block is free,
  // the new sequence waits and is recomputed.
  std::int32_t fork(const Sequence& parent, Sequence child);
  // Room for up to `count` positions behind all its tokens, in its blocks and in free ones: returns
  // for how many. Nobody is preempted for them.
  int extend(Sequence& sequence, int count);
  // Only the first `computed` positions count from now on; blocks behind them are given back.
  void truncate(Sequence& sequence, int computed);
  // Takes a sequence out and frees its blocks.
  void finish(Sequence* sequence);
  // Takes out all sequences for which the predicate holds, running or waiting, in their order.
  std::vector<Sequence> remove_if(const std::function<bool(const Sequence&)>& predicate);

  const std::list<Sequence>& running() const { return running_; }
  const std::deque<Sequence>& waiting() const { return waiting_; }
  const BlockManager& blocks() const { return blocks_; }
  std::int64_t preemptions() const { return preemptions_; }

 private:
  int blocks_for(int positions) const {
    return (positions + options_.block_size - 1) / options_.block_size;
  }
  int slots_taken() const;
  void admit();
  bool reserve(Sequence& sequence, int count);
  void preempt(std::list<Sequence>::iterator victim);
  void release(Sequence& sequence);

  SchedulerOptions options_;
  BlockManager blocks_;
  std::list<Sequence> running_;   // oldest first
  std::deque<Sequence> waiting_;  // in order of submission, preempted ones in front
  std::int64_t preemptions_ = 0;
};

}  // namespace taper
