// SPDX-License-Identifier: Apache-2.0
#include "infer/EvalJob.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/Text.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

std::vector<std::vector<std::int32_t>> tokens_of(const std::vector<Prompt>& prompts) {
  std::vector<std::vector<std::int32_t>> tokens;
  for (const Prompt& p : prompts) tokens.push_back(p.tokens);
  return tokens;
}

}  // namespace

EvalJob::EvalJob(const GenerateOptions& options, const std::vector<RewardOptions>& rewards,
                 ModelFiles& files, const std::vector<Prompt>& prompts, const Ranks& ranks,
                 Spawner* spawner, const std::string& log_directory)
    : files_(files),
      prompts_(prompts),
      tokens_(tokens_of(prompts)),
      ranks_(ranks),
      samples_(options.samples),
      generation_(options, files, tokens_, ranks),
      judge_(rewards, files, ranks, spawner, log_directory,
             {options.type, options.tp,
              std::max(RewardModelSetup().max_rows, generation_.max_positions()),
              generation_.max_positions(), judge_plan_.phase("training")}) {
  files.require_tokenizer("responses are judged by their text");
  judge_.require_judges();
  judge_.add_memory(judge_plan_);
}

// Each rank has a share of them judged.
SampleSet EvalJob::judge(SampleSet samples) {
  std::vector<int> rank_of(static_cast<std::size_t>(samples.size()));
  for (std::size_t row = 0; row < rank_of.size(); ++row)
    rank_of[row] = static_cast<int>(row) % ranks_.size();
  samples.move_to({1, ranks_.size()}, rank_of);
  judge_.begin(prompts_);
  for (const Sample& s : samples.here())
    judge_.submit({.id = s.id, .prompt = s.prompt, .response = s.response, .finish = s.finish});
  return judge_.finish(std::move(samples.here()), {}).value();  // nothing stops it
}

EvalResult EvalJob::run() {
  EvalResult result;
  result.samples = samples_;
  judge_.start_workers(Judge::Start::kOnDemand);
  auto responses = generation_.run();
  std::optional<Arena> arena;  // the memory of the generation is free again
  if (!judge_plan_.items().empty()) {
    require_memory(ranks_, judge_plan_, "lower --max-new-tokens");
    judge_.load_models(arena.emplace(judge_plan_));
  }
  SampleSet samples = judge(std::move(responses));
  result.rewards = judge_.metrics("reward");
  for (const SampleSummary& s : samples.all()) {
    result.mean_length += s.response_tokens;
    if (s.finish == FinishReason::kLength) ++result.truncated;
  }
  result.mean_length /= static_cast<double>(samples.size());
  const auto scores = score_prompts(samples, prompts_.size(), judge_.answer_rule(), files_);
  std::map<std::string, std::vector<PromptScores>> groups;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i].samples > 0)
      groups[prompts_[i].source.empty() ? "all" : prompts_[i].source].push_back(scores[i]);
  for (const auto& [source, list] : groups) result.groups[source] = summarize(list);
  if (groups.size() > 1) result.groups["all"] = summarize(scores);
  return result;
}

// Where responses were dropped, no prompt of a group may have as many as a pass@k needs.
std::string to_table(const EvalResult& result) {
  const std::vector<int> sizes = pass_sizes(result.samples);
  const std::string samples = std::to_string(result.samples);
  char cell[160];
  std::snprintf(cell, sizeof cell, "%-16s %8s %9s", "task", "prompts", ("avg@" + samples).c_str());
  std::string table = cell;
  for (const int k : sizes) {
    std::snprintf(cell, sizeof cell, " %9s", ("pass@" + std::to_string(k)).c_str());
    table += cell;
  }
  std::snprintf(cell, sizeof cell, " %9s\n", ("maj@" + samples).c_str());
  table += cell;
  for (const auto& [source, scores] : result.groups) {
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
  for (const auto& [source, scores] : result.groups) {
    OrderedJson group;
    const std::string samples = std::to_string(result.samples);
    group["prompts"] = scores.prompts;
    group["avg@" + samples] = scores.avg;
    for (const int k : pass_sizes(result.samples))
      if (scores.pass.contains(k)) group["pass@" + std::to_string(k)] = scores.pass.at(k);
    group["maj@" + samples] = scores.maj;
    json["tasks"][source] = group;
  }
  for (const auto& [name, value] : result.rewards) json[name] = value;
  json["response_length/mean"] = result.mean_length;
  json["truncated"] = result.truncated;
  return json.dump(2) + "\n";
}

}  // namespace taper
