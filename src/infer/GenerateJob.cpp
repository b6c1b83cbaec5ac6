// SPDX-License-Identifier: Apache-2.0
#include "infer/GenerateJob.hpp"

#include <algorithm>
#include <optional>

#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Printable.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "io/AtomicFile.hpp"
#include "io/Json.hpp"
#include "io/JsonNumber.hpp"
#include "rollout/GeneratedSample.hpp"
#include "rollout/RequestParts.hpp"

namespace taper {
namespace {

// The options with lengths as the prompts and the context have them, and no more sequences in
// flight than there will be.
GeneratorOptions fitted(const GenerateOptions& o, const ModelFiles& files,
                        const std::vector<std::vector<std::int32_t>>& prompts, int replicas) {
  std::size_t longest = 1;
  for (const auto& p : prompts) longest = std::max(longest, p.size());
  GeneratorOptions r = o;
  r.max_prompt_tokens = static_cast<int>(longest);
  r.max_new_tokens = std::min(o.max_new_tokens, files.config.max_positions - r.max_prompt_tokens);
  const std::int64_t responses = static_cast<std::int64_t>(prompts.size()) * o.samples;
  r.max_running = static_cast<int>(
      std::min<std::int64_t>(o.max_running, (responses + replicas - 1) / replicas));
  r.step_rows = std::max(o.step_rows, r.max_running);
  return r;
}

// Says that the context will end responses where the limit asked for would not.
void report_short_context(int max_new_tokens, const ModelFiles& files, const GeneratorOptions& r) {
  if (max_new_tokens <= r.max_new_tokens) return;
  TAPER_INFO("--max-new-tokens is "
             << max_new_tokens << ", but the context of " << path_text(files.directory) << " holds "
             << files.config.max_positions
             << " tokens: a response ends when it is full (the response to the longest prompt, of "
             << r.max_prompt_tokens << ", has " << r.max_new_tokens << " at most)");
}

}  // namespace

GenerateJob::GenerateJob(const GenerateOptions& options, ModelFiles& files,
                         const std::vector<std::vector<std::int32_t>>& prompts, const Ranks& ranks)
    : options_(options),
      files_(files),
      prompts_(prompts),
      ranks_(ranks),
      fitted_(fitted(options, files, prompts, ranks.size() / options.tp)),
      generator_(fitted_, options.type, files, ranks, plan_.phase("rollout")),
      model_("model", files, ranks, generator_.smallest_degree()) {
  report_short_context(options.max_new_tokens, files, fitted_);
  model_.add_memory(plan_, options.type);
  generator_.add_memory(plan_);
}

std::vector<Request> GenerateJob::requests() const {
  std::vector<Request> list;
  for (std::size_t i = 0; i < prompts_.size(); ++i)
    list.push_back({{static_cast<std::int64_t>(i), 0},
                    options_.samples,
                    prompts_[i],
                    options_.max_new_tokens});
  return in_parts(std::move(list), ranks_.size() / options_.tp);
}

SampleSet GenerateJob::run() {
  const StopOptions stops = options_.stops(files_);
  require_memory(ranks_, plan_, "lower --kv-memory-mb, --max-running or --step-rows");
  ranks_.progress.set_phase("gen");
  Arena arena(plan_);
  model_.load(ranks_.exec, options_.type, arena);
  generator_.create(model_.packed(), arena, files_.rope_table(generator_.max_positions()));
  barrier(ranks_.world());
  const Timer timer;
  auto completions = generator_.run(requests(), options_.sampling, stops);
  std::vector<Sample> mine;
  mine.reserve(completions.size());
  for (Completion& c : completions) mine.push_back(as_sample(std::move(c)));
  SampleSet samples(ranks_.world(), std::move(mine));
  seconds_ = timer.seconds();
  return samples;
}

std::string response_line(const Sample& s, const ModelFiles& files) {
  const auto list = [](const auto& values, const auto& show) {
    std::string text;
    for (const auto value : values) text += (text.empty() ? "" : ", ") + show(value);
    return "[" + text + "]";
  };
  const auto id_text = [](std::int32_t id) { return std::to_string(id); };
  const std::string text =
      files.has_tokenizer()
          ? printable_json(Json(files.tokenizer().decode(s.response, SkipSpecial::kYes)).dump())
          : "null";
  return "{\"index\": " + std::to_string(s.id.prompt) +
         ", \"sample\": " + std::to_string(s.id.sample) +
         ", \"prompt_tokens\": " + list(s.prompt, id_text) +
         ", \"tokens\": " + list(s.response, id_text) +
         ", \"log_probs\": " + list(s.log_probs, log_prob_text) + ", \"text\": " + text +
         ", \"finish\": \"" + to_string(s.finish) + "\"}\n";
}

void write_responses(const std::string& path, SampleSet& samples, const ModelFiles& files,
                     const Group& world) {
  std::vector<int> rank_of;
  for (std::int64_t row = 0; row < samples.size(); ++row)
    rank_of.push_back(static_cast<int>(row * world.size() / samples.size()));
  samples.move_to({1, world.size()}, rank_of);
  std::string lines;
  for (const Sample& s : samples.here()) lines += response_line(s, files);
  std::optional<AtomicFile> file;
  if (world.rank() == 0) file.emplace(path);
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string part = broadcast_string(world, rank == world.rank() ? lines : "", rank);
    if (file) file->write(part);
  }
  if (file) file->commit();
}

}  // namespace taper
