// SPDX-License-Identifier: Apache-2.0
#include "reward/Judge.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include "base/Error.hpp"
#include "base/Fingerprint.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "reward/Protocol.hpp"
#include "reward/Shaping.hpp"
#include "workers/ProgramPath.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr float kNoReward = std::numeric_limits<float>::quiet_NaN();

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

struct Judge::Command {
  Command(const RewardOptions& reward, Spawner& spawner, const std::string& logs, int rank)
      : options(reward),
        pool({"Rewards/" + reward.name,
              {"TAPER_REWARD=" + reward.name, "TAPER_RANK=" + std::to_string(rank)},
              logs + "/" + reward.name + "-rank" + std::to_string(rank) + "-worker"},
             reward.command, answer_reader(reward.command.components), spawner) {}

  const RewardOptions& options;
  WorkerPool pool;
  std::map<ResponseId, WorkerResult> results;
};

Judge::Judge(std::vector<RewardOptions> rewards, const ModelFiles& files, const Ranks& ranks,
             Spawner* spawner, std::string log_directory, const RewardModelSetup& setup,
             const ModelPlaces& places)
    : rewards_(std::move(rewards)),
      files_(files),
      ranks_(ranks),
      spawner_(spawner),
      log_directory_(std::move(log_directory)) {
  for (const RewardOptions& r : rewards_) {
    names_.push_back(r.name);
    adapts_ = adapts_ || r.adaptive_timeout.on;
    reads_texts_ = reads_texts_ || reads_text(r.kind);
    if (r.kind == RewardKind::kCommand)
      for (const std::string& part : r.command.components) names_.push_back(r.name + "/" + part);
    if (r.kind != RewardKind::kModel) continue;
    const auto named = places.find(r.name);
    const ModelPlace place = named != places.end()
                                 ? named->second
                                 : place_on_all(ranks, r.model.tp > 0 ? r.model.tp : setup.tp);
    models_[r.name] = std::make_unique<RewardModel>(r, files, ranks, place, setup);
  }
  figures_ = RewardFigures(names_);
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
  for (const RewardOptions& r : rewards_) {
    if (r.kind != RewardKind::kCommand) continue;
    const std::string& program = r.command.command.front();
    TAPER_VALIDATE(can_be_run(program),
                   "Rewards/" << r.name << "/Command: there is no program " << path_text(program)
                              << (program.find('/') == std::string::npos ? " in PATH" : "")
                              << " that can be run; check its name and permissions");
  }
}

void Judge::start_workers(Start start) {
  for (const RewardOptions& r : rewards_) {
    if (r.kind != RewardKind::kCommand) continue;
    TAPER_INSIST(spawner_ != nullptr, "a reward command without a spawner");
    std::error_code problem;
    fs::create_directories(log_directory_, problem);
    TAPER_VALIDATE(fs::is_directory(log_directory_),
                   "the directory " << path_text(log_directory_)
                                    << " for the logs of reward workers cannot be made ("
                                    << problem.message()
                                    << "); check its permissions, or name another one");
    auto& command = commands_[r.name];
    command = std::make_unique<Command>(r, *spawner_, log_directory_, ranks_.rank());
    if (start == Start::kNow) command->pool.start();
  }
}

RewardRule Judge::answer_rule() const {
  for (const RewardOptions& r : rewards_)
    if (const auto rule = rule_of(r.kind)) return *rule;
  return RewardRule::kExact;
}

void Judge::begin(std::span<const Prompt> prompts, std::int64_t first_prompt) {
  prompts_.clear();
  for (const Prompt& p : prompts)
    prompts_.push_back({p.truth, p.source, p.extra,
                        Fingerprint().add_all(std::span<const std::int32_t>(p.tokens)).value()});
  first_prompt_ = first_prompt;
  texts_.clear();
  for (auto& [name, command] : commands_) command->results.clear();
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
  for (auto& [name, command] : commands_)
    command->pool.submit({r.id, request_members(name, r), timeout_of(command->options, facts)});
  if (reads_texts_) texts_[ended.id] = std::move(r.response);
}

void Judge::cancel(const ResponseId& id) {
  for (auto& [name, command] : commands_) command->pool.cancel(id);
  texts_.erase(id);
}

// Seconds for an answer to a prompt, if it has a time of its own.
double Judge::timeout_of(const RewardOptions& reward, const PromptFacts& facts) const {
  if (!reward.adaptive_timeout.on) return INFINITY;
  return adaptive_timeout(reward.adaptive_timeout, anchors_.find(reward.name, facts.fingerprint));
}

void Judge::set_anchors(const Anchors::Table& anchors) {
  if (adapts_) anchors_.set_table(anchors);
}

// No rank waits in a collective for workers of others, which may take longer than ranks may be
// silent: all meet now and then.
bool Judge::wait_for_workers(const std::function<bool()>& stop) {
  const Timer timer;
  for (double pause = 0.0;; pause = std::clamp(timer.seconds() / 16, 0.001, 0.1)) {
    bool done = true;
    for (auto& [name, command] : commands_) done = command->pool.wait(pause) && done;
    if (done && pause > 0.0) std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    std::vector<std::int32_t> open{done ? 0 : 1};
    all_reduce_max(ranks_.world(), open);
    if (open.front() == 0) return true;
    if (stop && stop()) return false;
  }
}

// Takes over what the workers said. Whether a score is missing, on any rank, that the run cannot do
// without. Collective over the world.
bool Judge::take_judgements() {
  std::vector<std::int32_t> lost{0};
  for (auto& [name, command] : commands_)
    for (WorkerResult& result : command->pool.take()) {
      if (!result.is_answered && command->options.command.on_error == OnError::kFail)
        lost.front() = 1;
      command->results[result.about] = std::move(result);
    }
  all_reduce_max(ranks_.world(), lost);
  return lost.front() != 0;
}

// A scheduler that ends a job signals its processes one after another: workers may be gone before a
// rank knows. What they were at is then not lost but judged when the run goes on.
bool Judge::is_about_to_stop(const std::function<bool()>& stop) {
  constexpr int kQuestions = 5;
  for (int i = 0; stop && i < kQuestions; ++i) {
    if (stop()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

std::optional<SampleSet> Judge::finish(std::vector<Sample> mine, const std::function<bool()>& stop,
                                       std::span<const ModelCall> others, CallRecord* record) {
  if (!commands_.empty()) {
    if (!wait_for_workers(stop)) return std::nullopt;
    if (take_judgements() && is_about_to_stop(stop)) return std::nullopt;
  }
  for (Sample& s : mine) score(s);
  SampleSet samples(ranks_.world(), std::move(mine));
  add_model_rewards(samples, others, record);
  count(samples.all());
  if (adapts_) share_anchors();
  const bool any = std::any_of(samples.all().begin(), samples.all().end(),
                               [](const SampleSummary& s) { return !s.unscored; });
  if (!any && !samples.empty())
    TAPER_FAIL(ExitCode::kFailure,
               "none of the " << count_text(samples.size(), "response")
                              << " has a score (all are dropped: Rewards, On Error drop); see the "
                                 "logs of the reward workers in "
                              << path_text(log_directory_));
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

// Before models have judged, whose rewards are missing.
void Judge::score(Sample& s) {
  const std::string text = take_text(s);
  const std::string& truth = facts_of(s.id.prompt).truth;
  double score = 0.0, unshaped = 0.0;
  s.rewards.clear();
  s.unscored = false;
  for (const RewardOptions& r : rewards_) {
    double value = 0.0;
    if (r.kind == RewardKind::kCommand) {
      const std::size_t at = s.rewards.size();
      add_answer(*commands_.at(r.name), s);
      value = std::isnan(s.rewards[at]) ? 0.0 : s.rewards[at];
    } else if (r.kind == RewardKind::kModel) {
      s.rewards.push_back(kNoReward);  // see add_model_rewards()
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

std::ptrdiff_t Judge::place_in_names(const std::string& reward) const {
  return std::find(names_.begin(), names_.end(), reward) - names_.begin();
}

// Dropped samples are judged like the others: what is recorded of them is whole.
ModelCall Judge::call_of(const RewardOptions& reward) const {
  RewardModel& model = *models_.at(reward.name);
  const auto at = place_in_names(reward.name);
  const auto work = [&model, at](SampleSet& samples) {
    const std::vector<float> values = model.score(samples);
    for (std::size_t k = 0; k < values.size(); ++k) samples.here()[k].rewards[at] = values[k];
    return MetricValues{};
  };
  const SampleFigure figure{
      [at](const Sample& s) { return std::vector{s.rewards[at]}; },
      [at](Sample& s, std::vector<float> value) { s.rewards[at] = value.front(); }};
  return {"reward_model", reward.name, model.place().layout, model.place().group(), work, {figure}};
}

void Judge::add_model_rewards(SampleSet& samples, std::span<const ModelCall> others,
                              CallRecord* record) {
  std::vector<ModelCall> calls;
  for (const RewardOptions& r : rewards_)
    if (r.kind == RewardKind::kModel) calls.push_back(call_of(r));
  calls.insert(calls.end(), others.begin(), others.end());
  make_calls(samples, ranks_.world(), calls, record);
  if (models_.empty()) return;
  for (Sample& s : samples.here())
    for (const RewardOptions& r : rewards_) {
      if (r.kind != RewardKind::kModel) continue;
      const auto at = place_in_names(r.name);
      s.score = static_cast<float>(s.score + r.weight * s.rewards[at]);
      s.unshaped_score = static_cast<float>(s.unshaped_score + r.weight * s.rewards[at]);
    }
  samples.summarize();
}

// What the workers said, NaN if they gave no score.
void Judge::add_answer(const Command& command, Sample& s) const {
  const CommandOptions& options = command.options.command;
  const auto found = command.results.find(s.id);
  TAPER_INSIST(found != command.results.end(), "a response that no worker was asked about");
  const WorkerResult& result = found->second;
  if (result.is_answered) {
    for (const double figure : result.figures) s.rewards.push_back(static_cast<float>(figure));
    return;
  }
  if (options.on_error == OnError::kFail)
    TAPER_FAIL(ExitCode::kFailure,
               "Rewards/" << command.options.name << " has no score for sample " << s.id.sample
                          << " of prompt " << s.id.prompt << " after "
                          << count_text(options.retries + 1, "attempt") << " (" << result.problem
                          << "); with On Error zero or drop the run would continue");
  s.rewards.insert(s.rewards.end(), options.components.size() + 1, kNoReward);
  if (options.on_error == OnError::kDrop) s.unscored = true;
}

void Judge::count(const std::vector<SampleSummary>& samples) {
  figures_.add(samples);
  for (auto& [name, command] : commands_) {
    count_attempts(*command, samples);
    require_answers(*command, samples);
  }
}

// The attempts of the workers of all ranks, into the figures. Collective over the world.
void Judge::count_attempts(Command& command, const std::vector<SampleSummary>& samples) {
  const PoolCounts counts = command.pool.take_counts();
  std::vector<std::int64_t> sums{counts.errors, counts.timeouts, counts.restarts, counts.cut_short};
  all_reduce_sum(ranks_.world(), sums);
  std::vector<double> seconds{0.0}, longest{0.0};
  std::string problem;
  for (const auto& [key, result] : command.results) {
    seconds[0] += result.is_answered ? result.seconds : 0.0;
    longest[0] = std::max(longest[0], result.seconds);
    if (!result.is_answered) problem = result.problem;
  }
  all_reduce_ordered_sum(ranks_.world(), seconds);
  all_reduce_max(ranks_.world(), longest);
  RewardAttempts attempts{.errors = sums[0],
                          .timeouts = sums[1],
                          .restarts = sums[2],
                          .seconds = seconds[0],
                          .longest = longest[0]};
  if (command.options.adaptive_timeout.on)
    attempts.adapted = AdaptedAnswers{.cut_short = sums[3],
                                      .anchor_hits = anchor_hits(command.options.name, samples)};
  figures_.add(command.options.name, attempts);
  if (!problem.empty())
    TAPER_WARN("Rewards/" << command.options.name
                          << ": responses of this rank without a score; the last one: " << problem);
}

// Prompts that had an anchor when their answers were asked for: nothing was learned since.
std::int64_t Judge::anchor_hits(const std::string& reward,
                                const std::vector<SampleSummary>& samples) const {
  std::int64_t hits = 0;
  for_each_group(samples, [&](std::size_t begin, std::size_t) {
    if (anchors_.find(reward, facts_of(samples[begin].id.prompt).fingerprint)) ++hits;
  });
  return hits;
}

// The times of good answers become the anchors of those to come. Collective over the world.
void Judge::share_anchors() {
  for (const auto& [name, command] : commands_) {
    if (!command->options.adaptive_timeout.on) continue;
    for (const auto& [id, result] : command->results)
      if (result.is_answered && !result.with_start && Anchors::is_good(result.figures.front()))
        anchors_.note(name, facts_of(id.prompt).fingerprint, result.seconds);
  }
  anchors_.share(ranks_.world());
}

// Throws Error if it has scored none of the samples.
void Judge::require_answers(const Command& command,
                            const std::vector<SampleSummary>& samples) const {
  const std::string& name = command.options.name;
  const auto at = place_in_names(name);
  const bool none = std::all_of(samples.begin(), samples.end(),
                                [&](const SampleSummary& s) { return std::isnan(s.rewards[at]); });
  if (none && !samples.empty())
    TAPER_FAIL(ExitCode::kFailure, "Rewards/" << name << " has scored none of "
                                              << count_text(std::ssize(samples), "response")
                                              << "; see the logs of its workers in "
                                              << path_text(log_directory_));
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
