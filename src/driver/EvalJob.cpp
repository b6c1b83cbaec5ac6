// SPDX-License-Identifier: Apache-2.0
#include "driver/EvalJob.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

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
      generation_(options, files, tokens_, ranks),
      judge_(rewards, files, ranks, spawner, log_directory,
             {options.type, options.tp, std::max(2048, generation_.max_positions()),
              generation_.max_positions()}) {
  files.require_tokenizer("responses are judged by their text");
  judge_.require_judges();
  judge_.plan_models(judge_plan_);
}

// Each rank has a share of them judged.
std::vector<Sample> EvalJob::judge(std::vector<Sample> samples) {
  std::vector<Sample> mine;
  judge_.begin(prompts_);
  for (std::size_t i = ranks_.rank(); i < samples.size(); i += ranks_.size()) {
    Sample& s = samples[i];
    judge_.submit({s.ordinal, s.sample, s.prompt, s.response, {}, {}, s.finish, 0, {}});
    mine.push_back(std::move(s));
  }
  return judge_.finish(std::move(mine), {});
}

EvalResult EvalJob::run() {
  EvalResult result;
  judge_.start_workers(Judge::Need::kPossible);
  auto responses = generation_.run();
  std::optional<Arena> arena;  // the memory of the generation is free again
  if (!judge_plan_.items().empty()) {
    require_memory(ranks_, judge_plan_, "lower --max-new-tokens");
    judge_.load_models(arena.emplace(judge_plan_));
  }
  const auto samples = judge(std::move(responses));
  result.rewards = judge_.metrics("reward");
  std::vector<JudgedPrompt> judged(prompts_.size());
  for (const Sample& s : samples) {
    const Prompt& prompt = prompts_[s.ordinal];
    const std::string text = files_.tokenizer().decode(s.response, SkipSpecial::kYes);
    judged[s.ordinal].source = prompt.source.empty() ? "all" : prompt.source;
    add_sample(judge_.answer_rule(), s.score, text, judged[s.ordinal]);
    result.mean_length += static_cast<double>(s.response.size());
    if (s.finish == FinishReason::kLength) ++result.truncated;
  }
  result.mean_length /= static_cast<double>(samples.size());
  std::map<std::string, std::vector<JudgedPrompt>> groups;
  for (const JudgedPrompt& p : judged) groups[p.source].push_back(p);
  for (const auto& [source, list] : groups) result.groups[source] = summarize(list);
  if (groups.size() > 1) result.groups["all"] = summarize(judged);
  return result;
}

std::string to_table(const EvalResult& result) {
  const auto& first = result.groups.begin()->second;
  const int samples = first.pass.rbegin()->first;
  char cell[160];
  std::snprintf(cell, sizeof cell, "%-16s %8s %9s", "task", "prompts",
                ("avg@" + std::to_string(samples)).c_str());
  std::string table = cell;
  for (const auto& [k, unused] : first.pass) {
    std::snprintf(cell, sizeof cell, " %9s", ("pass@" + std::to_string(k)).c_str());
    table += cell;
  }
  std::snprintf(cell, sizeof cell, " %9s\n", ("maj@" + std::to_string(samples)).c_str());
  table += cell;
  for (const auto& [source, scores] : result.groups) {
    std::snprintf(cell, sizeof cell, "%-16s %8d %9.4f", source.c_str(), scores.prompts, scores.avg);
    table += cell;
    for (const auto& [k, value] : scores.pass) {
      std::snprintf(cell, sizeof cell, " %9.4f", value);
      table += cell;
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
    const std::string samples = std::to_string(scores.pass.rbegin()->first);
    group["prompts"] = scores.prompts;
    group["avg@" + samples] = scores.avg;
    for (const auto& [k, value] : scores.pass) group["pass@" + std::to_string(k)] = value;
    group["maj@" + samples] = scores.maj;
    json["tasks"][source] = group;
  }
  for (const auto& [name, value] : result.rewards) json[name] = value;
  json["response_length/mean"] = result.mean_length;
  json["truncated"] = result.truncated;
  return json.dump(2) + "\n";
}

}  // namespace taper
