// SPDX-License-Identifier: Apache-2.0
#include "reward/Judge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "reward/Protocol.hpp"
#include "reward/Shaping.hpp"

namespace taper {
namespace {

// Whether this rank computes such a reward from the text of a response.
bool reads_text(RewardKind kind) {
  switch (kind) {
    case RewardKind::kTask:
    case RewardKind::kExact:
    case RewardKind::kGsm8kStrict:
    case RewardKind::kGsm8kFlexible:
    case RewardKind::kBoxed:
    case RewardKind::kFormat:
      return true;
    case RewardKind::kLength:
    case RewardKind::kOverlong:
    case RewardKind::kRepetition:
    case RewardKind::kNone:
    case RewardKind::kCommand:
    case RewardKind::kModel:
      break;
  }
  return false;
}

}  // namespace

Judge::Judge(std::vector<RewardOptions> rewards, const ModelFiles& files, const Ranks& ranks,
             Spawner* spawner, std::string log_directory, const RewardModelSetup& setup,
             const ModelPlaces& places)
    : rewards_(std::move(rewards)),
      files_(files),
      ranks_(ranks),
      names_(reward_names(rewards_)),
      commands_(rewards_, ranks, spawner, std::move(log_directory)),
      figures_(names_) {
  for (const RewardOptions& r : rewards_) {
    reads_texts_ = reads_texts_ || reads_text(r.kind);
    if (r.kind != RewardKind::kModel) continue;
    const auto named = places.find(r.name);
    const ModelPlace place = named != places.end()
                                 ? named->second
                                 : place_on_all(ranks, r.model.tp > 0 ? r.model.tp : setup.tp);
    models_[r.name] = std::make_unique<RewardModel>(r, files, ranks, place, setup);
  }
}

Judge::~Judge() = default;

void Judge::add_memory(MemoryPlan& plan) const {
  for (const auto& [name, model] : models_) model->add_memory(plan);
}

void Judge::load_models(Arena& arena) {
  for (const auto& [name, model] : models_) model->create(arena);
}

void Judge::require_judges() const {
  for (const auto& [name, model] : models_) model->require_weights();
  commands_.require_programs();
}

RewardRule Judge::answer_rule() const {
  for (const RewardOptions& r : rewards_)
    if (const auto rule = rule_of(r.kind)) return *rule;
  return RewardRule::kExact;
}

void Judge::begin(std::span<const Prompt> prompts, std::int64_t first_prompt) {
  prompts_.clear();
  for (const Prompt& p : prompts) prompts_.push_back({p.truth, p.source, p.extra});
  first_prompt_ = first_prompt;
  texts_.clear();
  commands_.begin(prompts, first_prompt);
}

const Judge::PromptFacts& Judge::facts_of(std::int64_t prompt) const {
  return prompts_.at(static_cast<std::size_t>(prompt - first_prompt_));
}

void Judge::submit(const EndedResponse& ended) {
  if (commands_.empty()) return;
  const PromptFacts& facts = facts_of(ended.id.prompt);
  JudgedResponse r{.id = ended.id,
                   .prompt = files_.tokenizer().decode(ended.prompt, SkipSpecial::kNo),
                   .response = files_.tokenizer().decode(ended.response, SkipSpecial::kYes),
                   .ground_truth = facts.truth,
                   .data_source = facts.source,
                   .extra_info = facts.extra,
                   .prompt_tokens = std::ssize(ended.prompt),
                   .response_tokens = std::ssize(ended.response),
                   .finish = ended.finish};
  commands_.submit(r);
  if (reads_texts_) texts_[ended.id] = std::move(r.response);
}

void Judge::cancel(const ResponseId& id) {
  commands_.cancel(id);
  texts_.erase(id);
}

std::optional<SampleSet> Judge::finish(std::vector<Sample> mine, const std::function<bool()>& stop,
                                       std::span<const ModelCall> others, CallRecord* record) {
  if (!commands_.collect(stop)) return std::nullopt;
  for (Sample& s : mine) score(s);
  SampleSet samples(ranks_.world(), std::move(mine));
  add_model_rewards(samples, others, record);
  figures_.add(samples.all());
  commands_.conclude(samples.all(), figures_);
  const bool any = std::any_of(samples.all().begin(), samples.all().end(),
                               [](const SampleSummary& s) { return !s.unscored; });
  if (!any && !samples.empty())
    TAPER_FAIL(ExitCode::kFailure,
               "none of the " << count_text(samples.size(), "response")
                              << " has a score (all are dropped: Rewards, On Error drop); see the "
                                 "logs of the reward workers in "
                              << path_text(commands_.log_directory()));
  return samples;
}

namespace {

// By those kinds of rewards that a rank computes itself.
double score_here(const RewardOptions& r, const std::string& truth, const std::string& text,
                  const std::vector<std::int32_t>& response) {
  switch (r.kind) {
    case RewardKind::kTask:
    case RewardKind::kExact:
    case RewardKind::kGsm8kStrict:
    case RewardKind::kGsm8kFlexible:
    case RewardKind::kBoxed:
      return score_response(*rule_of(r.kind), truth, text);
    case RewardKind::kFormat:
      return score_format(r.format, text);
    case RewardKind::kLength:
      return length_penalty(r.length, std::ssize(response));
    case RewardKind::kOverlong:
      return overlong_penalty(r.overlong, std::ssize(response));
    case RewardKind::kRepetition:
      return repetition_penalty(r.repetition, response);
    case RewardKind::kNone:
    case RewardKind::kCommand:
    case RewardKind::kModel:
      break;
  }
  TAPER_INSIST(false, "Rewards/" << r.name << " has a kind that is not computed here");
  return 0.0;
}

}  // namespace

// The text of a response, decoded unless submit() has done so; empty if no reward reads it.
std::string Judge::take_text(const Sample& s) {
  if (!reads_texts_) return "";
  if (auto known = texts_.extract(s.id)) return std::move(known.mapped());
  return files_.tokenizer().decode(s.response, SkipSpecial::kYes);
}

// The rewards of models are those that it has already, or missing (NaN).
void Judge::score(Sample& s) {
  const std::string text = take_text(s);
  const std::string& truth = facts_of(s.id.prompt).truth;
  double score = 0.0, unshaped = 0.0;
  const std::vector<float> known = std::exchange(s.rewards, {});
  s.unscored = false;
  for (const RewardOptions& r : rewards_) {
    double value = 0.0;
    if (r.kind == RewardKind::kCommand) {
      value = commands_.add_answer(r, s);
    } else if (r.kind == RewardKind::kModel) {
      const std::size_t at = s.rewards.size();
      s.rewards.push_back(at < known.size() ? known[at] : NAN);
    } else {
      value = score_here(r, truth, text, s.response);
      s.rewards.push_back(static_cast<float>(value));
    }
    score += r.weight * value;
    if (!is_shaping(r.kind)) unshaped += r.weight * value;
  }
  s.score = static_cast<float>(score);
  s.unshaped_score = static_cast<float>(unshaped);
}

// Dropped samples are judged like the others: what is recorded of them is whole.
ModelCall Judge::call_of(const RewardOptions& reward) const {
  RewardModel& model = *models_.at(reward.name);
  const auto at = reward_index(rewards_, reward.name), count = names_.size();
  // A sample may have no rewards yet.
  const auto reward_of = [at, count](Sample& s) -> float& {
    s.rewards.resize(count, NAN);
    return s.rewards[at];
  };
  const auto work = [&model, at](SampleSet& samples) {
    model.score(samples, at);
    return MetricValues{};
  };
  const SampleFigure figure{
      [at](const Sample& s) { return std::vector{s.rewards[at]}; },
      [reward_of](Sample& s, std::vector<float> value) { reward_of(s) = value.front(); }};
  ModelCall call{"reward_model",        reward.name, model.place().layout,
                 model.place().group(), work,        {figure}};
  call.early = {model.place().replica(), [&model, at, reward_of](std::vector<Sample>& samples) {
                  for (Sample& s : samples) reward_of(s);
                  model.score(samples, at);
                }};
  return call;
}

void Judge::add_model_rewards(SampleSet& samples, std::span<const ModelCall> others,
                              CallRecord* record) {
  std::vector<ModelCall> calls = model_calls();
  calls.insert(calls.end(), others.begin(), others.end());
  make_calls(samples, ranks_.world(), calls, record);
  if (models_.empty()) return;
  for (Sample& s : samples.here()) count_models(s);
  samples.summarize();
}

void Judge::count_models(Sample& s) const {
  for (const RewardOptions& r : rewards_) {
    if (r.kind != RewardKind::kModel) continue;
    const float value = s.rewards[reward_index(rewards_, r.name)];
    s.score = static_cast<float>(s.score + r.weight * value);
    s.unshaped_score = static_cast<float>(s.unshaped_score + r.weight * value);
  }
}

std::vector<ModelCall> Judge::model_calls() const {
  std::vector<ModelCall> calls;
  for (const RewardOptions& r : rewards_)
    if (r.kind == RewardKind::kModel) calls.push_back(call_of(r));
  return calls;
}

std::unique_ptr<Spawner> make_spawner(const std::function<std::vector<RewardOptions>()>& rewards) {
  try {
    for (const RewardOptions& reward : rewards())
      if (reward.kind == RewardKind::kCommand) return std::make_unique<Spawner>();
  } catch (const Error&) {
  }
  return nullptr;
}

}  // namespace taper
