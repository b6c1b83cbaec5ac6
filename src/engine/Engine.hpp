// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "base/ReplicaSnapshot.hpp"
#include "device/Arena.hpp"
#include "engine/Completion.hpp"
#include "engine/Drafter.hpp"
#include "engine/Penalty.hpp"
#include "engine/Request.hpp"
#include "engine/Sampler.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/Scheduler.hpp"
#include "engine/StepExchange.hpp"
#include "engine/StopMatcher.hpp"
#include "kernels/Staging.hpp"
#include "kvcache/BlockPool.hpp"
#include "model/Transformer.hpp"

namespace taper {

struct EngineOptions {
  SchedulerOptions scheduler;
  int kv_blocks = 0;      // blocks of 64 positions in the pool
  int max_positions = 0;  // longest sequence
  int valid_ids = 0;      // ids of the tokenizer
  int logit_rows = 64;    // rows of logits held at a time
  KvType kv_type = KvType::kF32;
  bool graphs = true;  // on devices, steps of decoding are recorded (model/StepGraphs.hpp)
};

// How an engine runs in one layout. What it refers to must outlive its use.
struct EngineLayout {
  const ModelView* view = nullptr;
  const ModelParallel* parallel = nullptr;
  EngineOptions options;
};

// The memory of an engine, for the largest of the layouts that it will run in. Its buffers stay
// where they are.
struct EngineMemory {
  int layers = 0, step_rows = 0;
  std::int64_t kv_layer = 0, activations = 0, head = 0;  // floats

  static EngineMemory of(const ParamTable& table, const ModelParallel& parallel,
                         const EngineOptions& options);
  // Makes room for `other` too.
  void cover(const EngineMemory& other);
  void add_memory(MemoryPlan& plan, MemoryPhase phase) const;
};

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
  Engine(const Exec& exec, const EngineLayout& layout, const EngineMemory& memory, Arena& arena,
         MemoryPhase phase, ConstFloatMatrix rope_table);

  // Who drafts from now on; null: nobody. Must outlive its use.
  void set_drafter(Drafter* drafter) { drafter_ = drafter; }

  // Starts a generation; the engine must be idle.
  void begin(const SamplingOptions& sampling, const StopOptions& stops);
  // Queues a prompt with its samples. Throws Error if it can never fit.
  void submit(const Request& request);

  // Continues in another layout, or with other sequences, as replica `replica` of the layout. Every
  // rank of the new group passes the same sequences in the same order. Keys and values of `running`
  // must be in their blocks of pool_for(layout). No device memory is allocated, and no page copied.
  void rebind(const EngineLayout& layout, int replica, std::list<Sequence> running,
              std::deque<Sequence> waiting);
  void set_replica(int replica) { replica_ = replica; }

  // The KV cache, as it is and as another layout would see the same memory.
  const BlockPool& pool() const { return pool_; }
  BlockPool pool_for(const EngineLayout& layout) const;
  const Exec& exec() const { return exec_; }
  const Scheduler& scheduler() const { return scheduler_; }
  const StepGraphs& graphs() const { return graphs_; }
  const ModelParallel& parallel() const { return *parallel_; }

  bool idle() const { return scheduler_.idle(); }

  // One forward pass: next tokens of running sequences and chunks of prompts. Collective over the
  // group; `word` of its rank 0 comes back on all ranks, by a StepExchange.
  StepReport step(ControlWord word = 0);

  // Responses finished since the last call, in the order in which they finished.
  std::vector<Completion> take_completions();

  // The state of this replica in a few integers, for the leaders' exchange; `speed` is not set.
  ReplicaSnapshot snapshot() const;
  std::int64_t preemptions() const { return preemptions_ + scheduler_.preemptions(); }

 private:
  // A row of the step's hidden states that tokens are drawn from, and the length that the sequence
  // has at it. The row after its last token gives one token for each of its samples; those of
  // drafted tokens one each.
  struct DrawRow {
    const Sequence* sequence = nullptr;
    int row = 0;
    int length = 0;
  };

  void add_drafts(std::vector<Work>& work);
  int recorded_rows(const std::vector<Work>& work) const;
  TokenBatch assemble(const std::vector<Work>& work, int rows);
  static std::vector<DrawRow> draw_rows(const std::vector<Work>& work);
  std::vector<DrawnToken> sample(std::span<const DrawRow> rows, FloatMatrix hidden,
                                 StepExchange& exchange);
  std::vector<DrawnToken> draw(std::span<const DrawRow> rows, FloatMatrix hidden,
                               StepExchange& exchange);
  int deliver(const std::vector<Work>& work, std::span<const DrawnToken> tokens);
  void add_token(Sequence& sequence, const DrawnToken& token) const;
  int append(Sequence& sequence, std::span<const DrawnToken> tokens);
  void fork_samples(Sequence& prompt, std::span<const DrawnToken> first_tokens);
  void complete(const Sequence& sequence, FinishReason reason);
  std::optional<FinishReason> end_of(const Sequence& sequence) const;

  const Exec& exec_;
  const ModelView* view_;
  const ModelParallel* parallel_;
  EngineOptions options_;
  ConstFloatMatrix rope_table_;
  KvMemory kv_memory_;
  float *pass_memory_, *head_memory_;
  BlockPool pool_;
  InferencePass pass_;
  TokenHead head_;
  Scheduler scheduler_;
  Drafter* drafter_ = nullptr;
  int replica_ = 0;
  std::int64_t preemptions_ = 0;  // in the layouts before
  std::int32_t finished_ = 0;
  SamplingOptions sampling_;
  RepetitionPenalty penalty_{1.0f};
  StopMatcher stops_{{}};
  std::vector<Completion> completions_;
  StepGraphs graphs_;
  // The packed batch of the current step, with room for the largest: recorded steps read it where
  // it is.
  Staged<std::int32_t> ids_, positions_;
  Staged<AttentionSegment> segments_;
};

}  // namespace taper
