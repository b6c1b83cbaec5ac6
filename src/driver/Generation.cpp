// SPDX-License-Identifier: Apache-2.0
#include "driver/Generation.hpp"

#include <algorithm>
#include <limits>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {

EngineOptions engine_options(const RolloutOptions& o, const ModelFiles& files,
                             const ModelParallel& parallel) {
  EngineOptions engine;
  engine.scheduler = {o.max_running, o.step_rows, kPage};
  engine.max_positions = o.max_prompt_tokens + o.max_new_tokens;
  engine.valid_ids = files.valid_ids();
  engine.logit_rows = std::min(o.max_running, 64);
  // The same number of blocks on all ranks of the group, also where heads divide unevenly.
  int kv_heads = 0;
  for (int i = 0; i < parallel.group().size(); ++i)
    kv_heads = std::max(kv_heads, parallel.shard(i).kv_heads().size());
  const BlockShape shape{files.config.layers, kv_heads, files.config.head_dim};
  const std::int64_t per_sequence = (engine.max_positions + kPage - 1) / kPage;
  const std::int64_t wanted = per_sequence * o.max_running + 1;
  const std::int64_t affordable =
      static_cast<std::int64_t>(o.kv_memory_mb * 1048576.0) / shape.bytes();
  engine.kv_blocks = static_cast<int>(
      std::min({wanted, affordable, std::int64_t{std::numeric_limits<int>::max()}}));
  TAPER_VALIDATE(engine.kv_blocks > per_sequence,
                 o.names.kv_memory
                     << " is " << o.kv_memory_mb << " (one sequence of " << engine.max_positions
                     << " tokens needs "
                     << format_bytes(static_cast<double>((per_sequence + 1) * shape.bytes()))
                     << "); raise it or lower the length limits");
  return engine;
}

StopOptions stop_options(const ModelFiles& files, const std::vector<std::string>& strings) {
  StopOptions stops{files.config.eos_ids, strings, {}};
  if (!strings.empty())
    for (int id = 0; id < files.valid_ids(); ++id)
      stops.token_bytes.push_back(files.tokenizer().token_bytes(id));
  return stops;
}

Sample as_sample(Completion&& c) {
  Sample s;
  s.ordinal = c.ordinal;
  s.sample = c.sample;
  s.prompt = std::move(c.prompt);
  s.response = std::move(c.response);
  s.log_probs = std::move(c.log_probs);
  s.kept_mass = std::move(c.kept_mass);
  s.finish = c.finish;
  s.spans = std::move(c.spans);
  return s;
}

}  // namespace taper
