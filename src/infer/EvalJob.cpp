// SPDX-License-Identifier: Apache-2.0
#include "infer/EvalJob.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "base/Text.hpp"
#include "io/Json.hpp"
#include "results/HeldOutNames.hpp"
#include "session/MemoryCheck.hpp"
#include "session/SharedArena.hpp"

namespace taper {
namespace {

PromptSizes sizes_of(const std::vector<Prompt>& prompts) {
  PromptSizes sizes{static_cast<int>(prompts.size())};
  for (const Prompt& p : prompts)
    sizes.longest = std::max(sizes.longest, static_cast<int>(p.tokens.size()));
  return sizes;
}

EvaluationSet set_of(const GenerateOptions& options, std::vector<Prompt> prompts) {
  EvaluationSet set;
  set.prompts = std::move(prompts);
  set.samples = options.samples;
  set.max_new_tokens = options.max_new_tokens;
  set.sampling = options.sampling;
  return set;
}

// What is printed: each task or data source, and "all" if there are several, or none is named.
std::map<std::string, EvalScores> groups_of(const EvalResult& result) {
  std::map<std::string, EvalScores> groups;
  for (const auto& [source, scores] : result.sources)
    groups[source.empty() ? "all" : source] = scores;
  if (result.sources.size() > 1) groups["all"] = result.scores;
  return groups;
}

}  // namespace

EvalJob::EvalJob(const GenerateOptions& options, const std::vector<RewardOptions>& rewards,
                 ModelFiles& files, std::vector<Prompt> prompts, const Ranks& ranks,
                 Spawner* spawner, const std::string& log_directory)
    : ranks_(ranks),
      set_(set_of(options, std::move(prompts))),
      model_(options, files, sizes_of(set_.prompts), ranks),
      judge_(
          rewards, files, ranks, spawner, log_directory,
          {options.type, options.tp, std::max(RewardModelSetup().max_rows, model_.max_positions()),
           model_.max_positions(), judge_plan_.phase("training")}),
      evaluator_(files, ranks, options.stops(files)) {
  set_.judge = &judge_;
  files.require_tokenizer("responses are judged by their text");
  judge_.require_judges();
  judge_.add_memory(judge_plan_);
}

EvalResult EvalJob::run() {
  judge_.start_workers(Judge::Start::kOnDemand);
  std::vector<Sample> answers;
  model_.use([&](Generator& generator) { answers = evaluator_.answer(set_, &generator).value(); });
  std::unique_ptr<Arena> arena;  // the memory of the generation is free again
  if (!judge_plan_.items().empty()) {
    require_memory(ranks_, judge_plan_, "lower --max-new-tokens");
    arena = make_arena(ranks_, judge_plan_);
    judge_.load_models(*arena);
  }
  EvalResult result{evaluator_.judge(set_, std::move(answers)).value(), {}};
  result.rewards = judge_.metrics("reward");
  return result;
}

// If responses were dropped, no prompt of a group may have as many as a pass@k needs.
std::string to_table(const EvalResult& result) {
  const std::vector<int> sizes = pass_sizes(result.samples);
  char cell[160];
  std::snprintf(cell, sizeof cell, "%-16s %8s %9s", "task", "prompts",
                avg_figure(result.samples).c_str());
  std::string table = cell;
  for (const int k : sizes) {
    std::snprintf(cell, sizeof cell, " %9s", pass_figure(k).c_str());
    table += cell;
  }
  std::snprintf(cell, sizeof cell, " %9s\n", maj_figure(result.samples).c_str());
  table += cell;
  for (const auto& [source, scores] : groups_of(result)) {
    std::snprintf(cell, sizeof cell, "%-16s %8d %9.4f", source.c_str(), scores.prompts, scores.avg);
    table += cell;
    for (const int k : sizes) {
      const bool is_there = scores.pass.contains(k);
      table += is_there ? format_text(" %9.4f", scores.pass.at(k)) : format_text(" %9s", "-");
    }
    std::snprintf(cell, sizeof cell, " %9.4f\n", scores.maj);
    table += cell;
  }
  std::snprintf(cell, sizeof cell, "mean response length %.1f tokens, %d at the length limit\n",
                result.mean_length, result.truncated);
  table += cell;
  for (const auto& [name, value] : result.rewards) {
    std::snprintf(cell, sizeof cell, "%-28s %9.4f\n", name.c_str(), value);
    table += cell;
  }
  return table;
}

std::string to_json(const EvalResult& result) {
  OrderedJson json;
  for (const auto& [source, scores] : groups_of(result)) {
    OrderedJson group;
    group["prompts"] = scores.prompts;
    for (const auto& [name, value] : named_scores(scores, result.samples)) group[name] = value;
    json["tasks"][source] = group;
  }
  for (const auto& [name, value] : result.rewards) json[name] = value;
  json["response_length/mean"] = result.mean_length;
  json["truncated"] = result.truncated;
  return json.dump(2) + "\n";
}

}  // namespace taper
