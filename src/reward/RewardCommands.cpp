// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardCommands.hpp"

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
#include "workers/ProgramPath.hpp"

namespace taper {

namespace fs = std::filesystem;

struct RewardCommands::Command {
  Command(const RewardOptions& reward, Spawner& spawner, const std::string& logs, int rank)
      : options(reward),
        pool({"Rewards/" + reward.name,
              {"TAPER_REWARD=" + reward.name, "TAPER_RANK=" + std::to_string(rank)},
              logs + "/" + reward.name + "-rank" + std::to_string(rank) + "-worker"},
             reward.command, answer_reader(reward.command.components), spawner) {}

  bool is_lost(const WorkerResult& result) const {
    return !result.is_answered && options.command.on_error == OnError::kFail;
  }

  const RewardOptions& options;
  WorkerPool pool;
  std::map<ResponseId, WorkerResult> results;
};

RewardCommands::RewardCommands(const std::vector<RewardOptions>& rewards, const Ranks& ranks,
                               Spawner* spawner, std::string log_directory)
    : rewards_(rewards),
      ranks_(ranks),
      spawner_(spawner),
      log_directory_(std::move(log_directory)) {
  for (const RewardOptions& r : rewards_) adapts_ = adapts_ || r.adaptive_timeout.on;
}

RewardCommands::~RewardCommands() = default;

void RewardCommands::require_programs() const {
  for (const RewardOptions& r : rewards_) {
    if (r.kind != RewardKind::kCommand) continue;
    const std::string& program = r.command.command.front();
    TAPER_VALIDATE(can_be_run(program),
                   "Rewards/" << r.name << "/Command: there is no program " << path_text(program)
                              << (program.find('/') == std::string::npos ? " in PATH" : "")
                              << " that can be run; check its name and permissions");
  }
}

void RewardCommands::start(Start start) {
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

void RewardCommands::begin(std::span<const Prompt> prompts, std::int64_t first_prompt) {
  fingerprints_.clear();
  if (adapts_)
    for (const Prompt& p : prompts)
      fingerprints_.push_back(
          Fingerprint().add_all(std::span<const std::int32_t>(p.tokens)).value());
  first_prompt_ = first_prompt;
  for (auto& [name, command] : commands_) command->results.clear();
}

std::uint64_t RewardCommands::fingerprint_of(std::int64_t prompt) const {
  return fingerprints_.at(static_cast<std::size_t>(prompt - first_prompt_));
}

// Seconds for an answer to a prompt, if it has a time of its own.
double RewardCommands::timeout_of(const RewardOptions& reward, std::int64_t prompt) const {
  if (!reward.adaptive_timeout.on) return INFINITY;
  return adaptive_timeout(reward.adaptive_timeout,
                          anchors_.find(reward.name, fingerprint_of(prompt)));
}

void RewardCommands::submit(const JudgedResponse& response) {
  for (auto& [name, command] : commands_)
    command->pool.submit({response.id, request_members(name, response),
                          timeout_of(command->options, response.id.prompt)});
}

void RewardCommands::cancel(const ResponseId& id) {
  for (auto& [name, command] : commands_) {
    command->pool.cancel(id);
    command->results.erase(id);
  }
}

bool RewardCommands::has_answers(const ResponseId& id) const {
  return std::all_of(commands_.begin(), commands_.end(), [&](const auto& named) {
    const Command& command = *named.second;
    const auto found = command.results.find(id);
    return found != command.results.end() && !command.is_lost(found->second);
  });
}

// Whether all has been answered, on all ranks, after that many seconds or sooner. Collective over
// the world.
bool RewardCommands::wait(double seconds) {
  bool done = true;
  for (auto& [name, command] : commands_) done = command->pool.wait(seconds) && done;
  if (done && seconds > 0.0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  std::vector<std::int32_t> open{done ? 0 : 1};
  all_reduce_max(ranks_.world(), open);
  return open.front() == 0;
}

void RewardCommands::take_answers() {
  for (auto& [name, command] : commands_)
    for (WorkerResult& result : command->pool.take())
      command->results[result.about] = std::move(result);
}

// Which score is missing on this rank that the run cannot do without; empty if none is.
std::string RewardCommands::loss() const {
  for (const auto& [name, command] : commands_)
    for (const auto& [id, result] : command->results)
      if (command->is_lost(result))
        return "Rewards/" + name + " has no score for sample " + std::to_string(id.sample) +
               " of prompt " + std::to_string(id.prompt) + " after " +
               count_text(command->options.command.retries + 1, "attempt") + " (" + result.problem +
               "); with On Error zero or drop the run would continue";
  return "";
}

namespace {

// A scheduler that ends a job signals its processes one after another: workers may be gone before a
// rank knows. What they were at is then not lost but judged when the run goes on.
bool is_about_to_stop(const std::function<bool()>& stop) {
  constexpr int kQuestions = 5;
  for (int i = 0; stop && i < kQuestions; ++i) {
    if (stop()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace

// No rank waits in a collective for workers of others, which may take longer than ranks may be
// silent: all meet now and then.
bool RewardCommands::collect(const std::function<bool()>& stop) {
  if (commands_.empty()) return true;
  const Timer timer;
  for (double pause = 0.0;; pause = std::clamp(timer.seconds() / 16, 0.001, 0.1)) {
    const bool is_done = wait(pause);
    take_answers();
    // The others, which may take hours, would be waited for in vain.
    if (const std::string lost = first_text(ranks_.world(), loss()); !lost.empty()) {
      if (is_about_to_stop(stop)) return false;
      TAPER_FAIL(ExitCode::kFailure, lost);
    }
    if (is_done) return true;
    if (stop && stop()) return false;
  }
}

double RewardCommands::add_answer(const RewardOptions& reward, Sample& s) const {
  constexpr float kNoReward = std::numeric_limits<float>::quiet_NaN();
  const CommandOptions& options = reward.command;
  const auto& results = commands_.at(reward.name)->results;
  const auto found = results.find(s.id);
  TAPER_INSIST(found != results.end(), "a response that no worker was asked about");
  const WorkerResult& result = found->second;
  if (result.is_answered) {
    for (const double figure : result.figures) s.rewards.push_back(static_cast<float>(figure));
    return static_cast<float>(result.figures.front());
  }
  s.rewards.insert(s.rewards.end(), options.components.size() + 1, kNoReward);
  if (options.on_error == OnError::kDrop) s.unscored = true;
  return 0.0;
}

void RewardCommands::conclude(const std::vector<SampleSummary>& samples, RewardFigures& figures) {
  for (auto& [name, command] : commands_) {
    count_attempts(*command, samples, figures);
    require_scores(name, samples);
  }
  if (adapts_) learn_anchors();
}

// The attempts of the workers of all ranks, into the figures. Collective over the world.
void RewardCommands::count_attempts(Command& command, const std::vector<SampleSummary>& samples,
                                    RewardFigures& figures) {
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
  figures.add(command.options.name, attempts);
  if (!problem.empty())
    TAPER_WARN("Rewards/" << command.options.name
                          << ": responses of this rank without a score; the last one: " << problem);
}

// Prompts that had an anchor when their answers were asked for: nothing was learned since.
std::int64_t RewardCommands::anchor_hits(const std::string& reward,
                                         const std::vector<SampleSummary>& samples) const {
  std::int64_t hits = 0;
  for_each_group(samples, [&](std::size_t begin, std::size_t) {
    if (anchors_.find(reward, fingerprint_of(samples[begin].id.prompt))) ++hits;
  });
  return hits;
}

// Throws Error if the command has scored none of the samples.
void RewardCommands::require_scores(const std::string& reward,
                                    const std::vector<SampleSummary>& samples) const {
  const std::size_t at = reward_index(rewards_, reward);
  const bool none = std::all_of(samples.begin(), samples.end(),
                                [&](const SampleSummary& s) { return std::isnan(s.rewards[at]); });
  if (none && !samples.empty())
    TAPER_FAIL(ExitCode::kFailure, "Rewards/" << reward << " has scored none of "
                                              << count_text(std::ssize(samples), "response")
                                              << "; see the logs of its workers in "
                                              << path_text(log_directory_));
}

// The times of good answers become the anchors of those to come. Collective over the world.
void RewardCommands::learn_anchors() {
  for (const auto& [name, command] : commands_) {
    if (!command->options.adaptive_timeout.on) continue;
    for (const auto& [id, result] : command->results)
      if (result.is_answered && !result.with_start && Anchors::is_good(result.figures.front()))
        anchors_.note(name, fingerprint_of(id.prompt), result.seconds);
  }
  anchors_.share(ranks_.world());
}

void RewardCommands::set_anchors(const Anchors::Table& anchors) {
  if (adapts_) anchors_.set_table(anchors);
}

}  // namespace taper
