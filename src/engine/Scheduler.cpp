// SPDX-License-Identifier: Apache-2.0
#include "engine/Scheduler.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/Error.hpp"

namespace taper {

Scheduler::Scheduler(const SchedulerOptions& options, int blocks)
    : options_(options), blocks_(blocks) {
  TAPER_VALIDATE(options.max_running > 0 && options.max_step_rows >= options.max_running,
                 "max_running " << options.max_running << " and max_step_rows "
                                << options.max_step_rows
                                << " (each running sequence needs a row per step)");
}

void Scheduler::adopt(std::list<Sequence> running, std::deque<Sequence> waiting) {
  std::vector<int> users(blocks_.total(), 0);
  for (const Sequence& s : running)
    for (const auto block : s.blocks) ++users.at(block);
  blocks_ = BlockManager(std::move(users));
  running_ = std::move(running);
  waiting_ = std::move(waiting);
}

void Scheduler::submit(Sequence sequence) {
  TAPER_VALIDATE(blocks_for(sequence.prompt_length + sequence.max_new_tokens) <= blocks_.total(),
                 "a sequence of " << sequence.prompt_length << " + " << sequence.max_new_tokens
                                  << " tokens needs "
                                  << blocks_for(sequence.prompt_length + sequence.max_new_tokens)
                                  << " KV blocks (the cache has " << blocks_.total()
                                  << "); give the KV cache more memory or lower the length limit");
  waiting_.push_back(std::move(sequence));
}

int Scheduler::slots_taken() const {
  int taken = 0;
  for (const Sequence& s : running_) taken += s.samples;
  return taken;
}

// Admits waiting sequences in order while slots and blocks for their pending tokens last.
void Scheduler::admit() {
  // Blocks that sequences admitted before will still need for what they are reading: without them,
  // a new one would soon be preempted again.
  int reserved = 0;
  for (const Sequence& s : running_)
    reserved += std::max(0, blocks_for(s.length()) - static_cast<int>(s.blocks.size()));
  int taken = slots_taken();
  while (!waiting_.empty()) {
    const Sequence& next = waiting_.front();
    // One more token, and a block for each further sample: a fork copies the partly filled last
    // block of its parent.
    const int need = blocks_for(next.length() + 1) + next.samples - 1;
    // The first one is always admitted: submit() has made sure that it fits alone, and a request
    // with more samples than slots would otherwise wait for ever.
    if (taken > 0 && taken + next.samples > options_.max_running) return;
    if (!running_.empty() && reserved + need > blocks_.free()) return;
    reserved += need;
    taken += next.samples;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// Blocks for the next `count` positions; false if the pool has too few.
bool Scheduler::reserve(Sequence& s, int count) {
  const int need = blocks_for(s.computed + count) - static_cast<int>(s.blocks.size());
  if (need > blocks_.free()) return false;
  for (int i = 0; i < need; ++i) s.blocks.push_back(blocks_.allocate());
  return true;
}

void Scheduler::release(Sequence& s) {
  for (const auto block : s.blocks) blocks_.release(block);
  s.blocks.clear();
  s.computed = 0;
}

void Scheduler::preempt(std::list<Sequence>::iterator victim) {
  release(*victim);
  ++preemptions_;
  // In front: it is older than those that wait.
  waiting_.push_front(std::move(*victim));
  running_.erase(victim);
}

std::vector<Work> Scheduler::next_step() {
  admit();
  std::vector<Work> work;
  int rows = options_.max_step_rows;
  // Oldest first, with a row kept for each of those after it, so that a long prefill stops no
  // decode. A sequence that finds no block takes it from the youngest: the youngest has no work in
  // this step yet, and the oldest always gets on, so the engine cannot get stuck.
  for (auto it = running_.begin(); it != running_.end() && rows > 0;) {
    const int behind = static_cast<int>(running_.size() - work.size()) - 1;
    const int count = std::min(it->pending(), std::max(1, rows - behind));
    bool alive = true;
    while (!reserve(*it, count)) {
      const auto youngest = std::prev(running_.end());
      alive = youngest != it;
      const auto next = std::next(it);
      preempt(youngest);
      if (!alive) {
        it = next;
        break;
      }
    }
    if (!alive) continue;
    work.push_back({&*it, count});
    rows -= count;
    ++it;
  }
  return work;
}

std::int32_t Scheduler::fork(const Sequence& parent, Sequence child) {
  const bool has_part = parent.computed % options_.block_size != 0;
  if (has_part && blocks_.free() == 0) {
    // Recomputed from its tokens later, which gives the same bits (doc/numerics.md).
    child.computed = 0;
    child.blocks.clear();
    waiting_.push_front(std::move(child));
    return -1;
  }
  child.computed = parent.computed;
  child.blocks = parent.blocks;
  for (std::size_t i = 0; i + (has_part ? 1 : 0) < child.blocks.size(); ++i)
    blocks_.share(child.blocks[i]);
  std::int32_t copy = -1;
  if (has_part) copy = child.blocks.back() = blocks_.allocate();
  running_.push_back(std::move(child));
  return copy;
}

int Scheduler::extend(Sequence& s, int count) {
  while (count > 0 && !reserve(s, s.pending() + count)) --count;
  return count;
}

void Scheduler::truncate(Sequence& s, int computed) {
  s.computed = computed;
  while (static_cast<int>(s.blocks.size()) > blocks_for(computed)) {
    blocks_.release(s.blocks.back());
    s.blocks.pop_back();
  }
}

void Scheduler::finish(Sequence* sequence) {
  release(*sequence);
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&](const Sequence& s) { return &s == sequence; });
  TAPER_EXPECT(at != running_.end());
  running_.erase(at);
}

std::vector<Sequence> Scheduler::remove_if(const std::function<bool(const Sequence&)>& predicate) {
  std::vector<Sequence> removed;
  const auto remove_from = [&](auto& sequences) {
    for (auto at = sequences.begin(); at != sequences.end();) {
      if (!predicate(*at)) {
        ++at;
        continue;
      }
      release(*at);
      removed.push_back(std::move(*at));
      at = sequences.erase(at);
    }
  };
  remove_from(running_);
  remove_from(waiting_);
  return removed;
}

}  // namespace taper
