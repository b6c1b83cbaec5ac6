// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ReplicaSnapshot.hpp"
#include "engine/Completion.hpp"
#include "engine/Drafter.hpp"
#include "engine/EarlyExits.hpp"
#include "engine/ModelRunner.hpp"
#include "engine/Request.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/Scheduler.hpp"
#include "engine/StepExchange.hpp"
#include "engine/StopMatcher.hpp"

namespace taper {

// What one step did, the same on all ranks of the group.
struct StepReport {
  int decode_rows = 0;       // sequences that got their next token's position computed
  int prefill_rows = 0;      // prompt (or recomputed) positions
  int drafted_rows = 0;      // guesses of a drafter
  int accepted = 0;          // tokens that sequences got beyond one, by right guesses
  std::int64_t context = 0;  // summed context lengths after the step
  int running = 0;
  int waiting = 0;
  ControlWord control = 0;  // the leader's word
};

// Generates responses for the requests of one replica: continuous batching over a paged KV cache,
// sampling in the loop. All ranks of the group hold the same sequences and make the same calls.
// Token ids in, token ids out.
class Engine {
 public:
  // `memory` covers all layouts that rebind() will be given.
  Engine(const Exec& exec, const EngineSetup& setup, const EngineMemory& memory, Arena& arena,
         MemoryPhase phase, ConstFloatMatrix rope_table);

  // Who drafts from now on; null: nobody. Must outlive its use.
  void set_drafter(Drafter* drafter) { drafter_ = drafter; }
  // Lets a drafter ask early exits, which work in `memory` (EarlyExits::floats, for the step rows
  // of the engine's memory) and live as long as the engine. Not collective.
  GuessModel& set_exits(const std::vector<ExitHead>& heads, float* memory);

  // Starts a generation; the engine must be idle.
  void begin(const SamplingOptions& sampling, const StopOptions& stops);
  // Queues a prompt with its samples. Throws Error if it can never fit.
  void submit(const Request& request);

  // Continues in another layout, or with other sequences, as replica `replica` of the layout. Every
  // rank of the new group passes the same sequences in the same order. Keys and values of `running`
  // must be in their blocks of pool_for(setup). No device memory is allocated, and no page copied.
  void rebind(const EngineSetup& setup, int replica, std::list<Sequence> running,
              std::deque<Sequence> waiting);
  void set_replica(int replica) { replica_ = replica; }

  // The KV cache, as it is and as another layout would see the same memory.
  const BlockPool& pool() const { return runner_.pool(); }
  BlockPool pool_for(const EngineSetup& setup) const { return runner_.pool_for(setup); }
  const Exec& exec() const { return runner_.exec(); }
  const Scheduler& scheduler() const { return scheduler_; }
  const StepGraphs& graphs() const { return runner_.graphs(); }
  const ModelParallel& parallel() const { return runner_.parallel(); }

  bool idle() const { return scheduler_.idle(); }

  // One forward pass: next tokens of running sequences and chunks of prompts. Collective over the
  // group; `word` of its rank 0 comes back on all ranks, by a StepExchange.
  StepReport step(ControlWord word = 0);

  // Gives up responses that are not wanted any more: they are completed with kAbort, at the length
  // they have. `is_unwanted` must say the same on all ranks of the group.
  void abort(const std::function<bool(const ResponseId&, int length)>& is_unwanted);

  // Responses finished since the last call, in the order in which they finished.
  std::vector<Completion> take_completions();

  // What there is of the responses in progress, as far as they have a token: as if they had ended
  // with kAbort.
  std::vector<Completion> unfinished() const;

  // The state of this replica in a few integers, for the leaders' exchange; `speed` is not set.
  ReplicaSnapshot snapshot() const;
  // That this rank has led: summed over all ranks, each counts once.
  std::int64_t preemptions() const {
    return preemptions_ + (parallel().group().rank() == 0 ? scheduler_.preemptions() : 0);
  }

 private:
  const EngineOptions& options() const { return runner_.options(); }
  void add_drafts(std::vector<Work>& work);
  static std::vector<DrawRow> draw_rows(const std::vector<Work>& work);
  int deliver(const std::vector<Work>& work, std::span<const DrawnToken> tokens);
  void add_token(Sequence& sequence, const DrawnToken& token) const;
  int append(Sequence& sequence, std::span<const DrawnToken> tokens);
  void fork_samples(Sequence& prompt, std::span<const DrawnToken> first_tokens);
  void complete(const Sequence& sequence, FinishReason reason);
  std::optional<FinishReason> end_of(const Sequence& sequence) const;

  ModelRunner runner_;
  Scheduler scheduler_;
  Drafter* drafter_ = nullptr;
  std::unique_ptr<EarlyExits> exits_;
  int step_rows_;  // in any layout
  int replica_ = 0;
  std::int64_t preemptions_ = 0;  // in the layouts before
  std::int32_t finished_ = 0;
  SamplingOptions sampling_;
  StopMatcher stops_{{}};
  std::vector<Completion> completions_;
};

}  // namespace taper
