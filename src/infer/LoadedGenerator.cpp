// SPDX-License-Identifier: Apache-2.0
#include "infer/LoadedGenerator.hpp"

#include <algorithm>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "comm/Collectives.hpp"
#include "session/MemoryCheck.hpp"
#include "session/SharedArena.hpp"

namespace taper {
namespace {

// The options with lengths as the prompts and the context have them, and no more sequences in
// flight than there will be.
GeneratorOptions fitted(const GenerateOptions& o, const ModelFiles& files,
                        const PromptSizes& prompts, int replicas) {
  GeneratorOptions r = o;
  r.max_prompt_tokens = prompts.longest;
  r.max_new_tokens = std::min(o.max_new_tokens, files.config.max_positions - r.max_prompt_tokens);
  const std::int64_t responses = std::int64_t{prompts.count} * o.samples;
  r.max_running = static_cast<int>(
      std::min<std::int64_t>(o.max_running, (responses + replicas - 1) / replicas));
  r.step_rows = std::max(o.step_rows, r.max_running);
  return r;
}

// Says that the context will end responses if the limit asked for would not.
void report_short_context(int max_new_tokens, const ModelFiles& files, int longest_prompt) {
  const int left = files.config.max_positions - longest_prompt;
  if (max_new_tokens <= left) return;
  TAPER_INFO("--max-new-tokens is "
             << max_new_tokens << ", but the context of " << path_text(files.directory) << " holds "
             << files.config.max_positions
             << " tokens: a response ends when it is full (the response to the longest prompt, of "
             << longest_prompt << ", has " << left << " at most)");
}

}  // namespace

LoadedGenerator::LoadedGenerator(const GenerateOptions& options, ModelFiles& files,
                                 const PromptSizes& prompts, const Ranks& ranks)
    : type_(options.type),
      files_(files),
      ranks_(ranks),
      generator_(fitted(options, files, prompts, ranks.size() / options.tp), type_, files, ranks,
                 plan_.phase("generation")),
      model_("model", files, ranks, generator_.smallest_degree()) {
  report_short_context(options.max_new_tokens, files, prompts.longest);
  model_.add_memory(plan_, type_);
  generator_.add_memory(plan_);
}

void LoadedGenerator::use(const std::function<void(Generator&)>& generate) {
  require_memory(ranks_, plan_, "lower --kv-memory-mb, --max-running or --step-rows");
  ranks_.progress.set_phase("gen");
  const std::unique_ptr<Arena> memory = make_arena(ranks_, plan_);
  Arena& arena = *memory;
  model_.load(type_, arena);
  generator_.create(model_.packed(), arena, files_.rope_table(generator_.max_positions()));
  barrier(ranks_.world());
  generate(generator_);
}

}  // namespace taper
