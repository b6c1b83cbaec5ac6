// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/Arena.hpp"
#include "engine/Request.hpp"
#include "engine/Sampler.hpp"
#include "engine/Scheduler.hpp"
#include "engine/StopMatcher.hpp"
#include "kvcache/BlockPool.hpp"
#include "model/Transformer.hpp"

namespace taper {

struct EngineOptions {
  SchedulerOptions scheduler;
  int kv_blocks = 0;      // blocks of 64 positions in the pool
  int max_positions = 0;  // longest sequence
  int valid_ids = 0;      // ids of the tokenizer
  int logit_rows = 64;    // rows of logits held at a time
};

// What a leader tells its group with every step; the meaning belongs to the caller. It rides in the
// step's own exchange.
using ControlWord = std::uint64_t;

// What one step did, the same on all ranks of the group.
struct StepReport {
  int decode_rows = 0;       // sequences that got their next token's position computed
  int prefill_rows = 0;      // prompt (or recomputed) positions
  std::int64_t context = 0;  // summed context lengths after the step
  int running = 0;
  int waiting = 0;
  ControlWord control = 0;  // the leader's word
};

// The state of a replica in a few integers, for the leaders' exchange.
struct EngineSnapshot {
  static constexpr int kBuckets = 20;  // response length in [2^i, 2^(i+1))
  std::int32_t alive = 0;
  std::int32_t waiting = 0;
  std::int64_t context = 0;
  std::int32_t longest = 0;
  std::int32_t free_blocks = 0;
  std::array<std::uint16_t, kBuckets> lengths{};
};

// Generates responses for the requests of one replica: continuous batching over a paged KV cache,
// sampling in the loop. All ranks of the group hold the same sequences and make the same calls.
// Token ids in, token ids out.
class Engine {
 public:
  static void plan(MemoryPlan& plan, MemoryPhase phase, const ParamTable& table,
                   const ModelParallel& parallel, const EngineOptions& options);

  Engine(const HostExec& exec, const ModelView& view, const ModelParallel& parallel,
         const EngineOptions& options, Arena& arena, MemoryPhase phase,
         ConstFloatMatrix rope_table);

  // Starts a generation; the engine must be idle.
  void begin(const SamplingOptions& sampling, const StopOptions& stops);
  // Queues a prompt with its samples. Throws Error where it can never fit.
  void submit(const Request& request);

  bool idle() const { return scheduler_.idle(); }

  // One forward pass: next tokens of running sequences and chunks of prompts. Collective over the
  // group; `word` of its rank 0 comes back on all ranks.
  StepReport step(ControlWord word = 0);

  // Responses finished since the last call, in the order in which they finished.
  std::vector<Completion> take_completions();

  EngineSnapshot snapshot() const;
  std::int64_t preemptions() const { return scheduler_.preemptions(); }

 private:
  TokenBatch assemble(const std::vector<Work>& work);
  void sample(const std::vector<Work>& work, FloatMatrix hidden);
  void append(Sequence& sequence, const DrawnToken& token);
  void part(Sequence& prompt, const std::vector<DrawnToken>& first_tokens);
  void complete(const Sequence& sequence, FinishReason reason);
  std::optional<FinishReason> end_of(const Sequence& sequence) const;

  const HostExec& exec_;
  const ModelView* view_;
  const ModelParallel* parallel_;
  EngineOptions options_;
  BlockPool pool_;
  InferencePass pass_;
  TokenHead head_;
  Scheduler scheduler_;
  SamplingOptions sampling_;
  StopMatcher stops_{{}};
  std::vector<Completion> completions_;
  // The packed batch of the current step.
  std::vector<std::int32_t> ids_, positions_;
  std::vector<AttentionSegment> segments_;
};

}  // namespace taper
