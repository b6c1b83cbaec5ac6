// SPDX-License-Identifier: Apache-2.0
#include "infer/ScoreJob.hpp"

#include <algorithm>

#include "base/Text.hpp"
#include "io/JsonNumber.hpp"
#include "rl/MicroBatch.hpp"
#include "rl/SampleSet.hpp"
#include "rl/TeacherForcing.hpp"
#include "session/MemoryCheck.hpp"
#include "session/SharedArena.hpp"

namespace taper {
namespace {

int longest(const std::vector<std::vector<std::int32_t>>& sequences) {
  std::size_t most = 1;
  for (const auto& s : sequences) most = std::max(most, s.size());
  return static_cast<int>(most);
}

}  // namespace

ScoreJob::ScoreJob(const ScoreOptions& options, ModelFiles& files,
                   const std::vector<std::vector<std::int32_t>>& sequences, const Ranks& ranks)
    : options_(options),
      files_(files),
      sequences_(sequences),
      ranks_(ranks),
      longest_(longest(sequences)),
      model_("model", files, ranks, options.tp) {
  int tokens = 0;
  for (const auto& s : sequences)
    tokens = std::min(options.max_tokens, tokens + static_cast<int>(s.size()));
  pass_.max_rows = std::max(tokens, longest_);
  pass_.checkpointing = Checkpointing::kYes;
  pass_.precision = precision(ranks.exec);
  pass_.owner.phase = plan_.phase("training");
  model_.add_memory(plan_, options.type);
  TrainPass::add_memory(plan_, files.table, model_.parallel(), pass_);
}

std::vector<std::vector<float>> ScoreJob::run() {
  require_memory(ranks_, plan_, "lower --max-tokens");
  ranks_.progress.set_phase("score");
  const std::unique_ptr<Arena> memory = make_arena(ranks_, plan_);
  Arena& arena = *memory;
  model_.load(options_.type, arena);
  TrainPass pass(files_.table, model_.parallel(), pass_, arena, files_.rope_table(longest_));

  std::vector<int> lengths;
  for (const auto& s : sequences_) lengths.push_back(static_cast<int>(s.size()));
  const Group& group = model_.parallel().group();
  const auto mine =
      assign_samples(lengths, ranks_.size() / group.size(), ranks_.rank() / group.size());
  std::vector<std::span<const std::int32_t>> prompts, responses;
  for (const int i : mine) {
    const std::span<const std::int32_t> all(sequences_[i]);
    prompts.push_back(all.first(1));
    responses.push_back(all.subspan(1));
  }
  auto scores = response_log_probs(
      {ranks_.exec, model_.view(), model_.parallel(), pass, pass_, {files_.valid_ids(), 1.0f}},
      prompts, responses);

  std::vector<Sample> samples;
  for (std::size_t k = 0; k < mine.size() && group.rank() == 0; ++k) {
    samples.emplace_back();
    samples.back().id.prompt = mine[k];
    samples.back().log_probs = std::move(scores[k]);
  }
  SampleSet scored(ranks_.world(), std::move(samples));
  scored.move_to({ranks_.size(), 1}, std::vector<int>(sequences_.size(), 0));  // all to all ranks
  std::vector<std::vector<float>> result;
  for (Sample& s : scored.here()) result.push_back(std::move(s.log_probs));
  return result;
}

std::string score_line(const std::vector<float>& log_probs, int prompt_length) {
  std::vector<std::string> words;
  if (prompt_length == 0) words.emplace_back("null");
  for (std::size_t i = std::max(0, prompt_length - 1); i < log_probs.size(); ++i)
    words.push_back(log_prob_text(log_probs[i]));
  return "{\"log_probs\": [" + join(words) + "]}\n";
}

}  // namespace taper
