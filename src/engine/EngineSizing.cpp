// SPDX-License-Identifier: Apache-2.0
#include "engine/EngineSizing.hpp"

#include <algorithm>
#include <limits>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {

EngineOptions engine_options(const EngineSizing& sizing, const EngineNeed& need,
                             const ModelConfig& model, const ModelParallel& parallel) {
  EngineOptions engine;
  engine.scheduler = {sizing.max_running, sizing.step_rows, kPage};
  engine.max_positions = need.max_positions;
  engine.valid_ids = need.valid_ids;
  engine.precision = need.precision;
  // Tokens are drawn from up to 64 rows in one pass over the head. Not from max_running rows: steps
  // with drafts have several for a sequence, and larger groups have more sequences.
  engine.logit_rows = std::min(sizing.step_rows, 64);
  // The same number of blocks on all ranks of the group, even if heads divide unevenly.
  int kv_heads = 0;
  for (int i = 0; i < parallel.group().size(); ++i)
    kv_heads = std::max(kv_heads, parallel.shard(i).kv_heads().size());
  const BlockShape shape{model.layers, kv_heads, model.head_dim, need.precision.kv_type};
  const std::int64_t per_sequence = (engine.max_positions + kPage - 1) / kPage;
  const std::int64_t wanted = per_sequence * sizing.max_running + 1;
  const std::int64_t affordable =
      static_cast<std::int64_t>(sizing.kv_memory_mb * 1048576.0) / shape.bytes();
  engine.kv_blocks = static_cast<int>(
      std::min({wanted, affordable, std::int64_t{std::numeric_limits<int>::max()}}));
  TAPER_VALIDATE(engine.kv_blocks > per_sequence,
                 need.kv_memory_key
                     << " is " << sizing.kv_memory_mb << " (one sequence of "
                     << engine.max_positions << " tokens needs "
                     << format_bytes(static_cast<double>((per_sequence + 1) * shape.bytes()))
                     << "); raise it or lower the length limits");
  return engine;
}

}  // namespace taper
