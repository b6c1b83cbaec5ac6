// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/Engine.hpp"
#include "model/ModelConfig.hpp"
#include "model/ModelParallel.hpp"

namespace taper {

// Limits of the options: beyond any machine, and small enough that counts computed from them do not
// overflow. The memory plan tells whether a machine has the memory.
inline constexpr int kMostRunning = 1 << 20;
inline constexpr int kMostStepRows = 1 << 22;
inline constexpr double kMostKvMemoryMb = 1e9;

// How large an engine may become, in the terms of users.
struct EngineSizing {
  int max_running = 64;          // sequences in flight per replica of the smallest degree
  int step_rows = 256;           // tokens per step, decode and prefill together
  double kv_memory_mb = 1024.0;  // per rank at most; less is taken if less is needed
};

// What the sizing is for: sequences of at most `max_positions` tokens with ids below `valid_ids`.
struct EngineNeed {
  int max_positions = 0;
  int valid_ids = 0;
  std::string kv_memory_key;  // names EngineSizing::kv_memory_mb in errors
  Precision precision = {};
};

// Engine settings for replicas of this group: KV blocks for what can be in flight, within the
// memory allowed, as many on all ranks of the group. Throws Error if not even one sequence fits.
EngineOptions engine_options(const EngineSizing& sizing, const EngineNeed& need,
                             const ModelConfig& model, const ModelParallel& parallel);

}  // namespace taper
