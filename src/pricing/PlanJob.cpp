// SPDX-License-Identifier: Apache-2.0
#include "pricing/PlanJob.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "profile/ProfileFile.hpp"
#include "results/MetricsLog.hpp"
#include "results/RunDirectory.hpp"
#include "rollout/RecordedTraces.hpp"
#include "run/JobLife.hpp"
#include "session/LayoutChecks.hpp"
#include "session/MemoryCheck.hpp"
#include "train/RunDegrees.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// Generations that are played; the last one counts: it is the first that trials time.
constexpr int kGenerations = kFirstTimedIteration;

// Throws Error if one was measured on another machine or transport than the options name.
std::vector<LatencyProfile> read_profiles(const PlanOptions& options) {
  std::vector<LatencyProfile> profiles;
  for (const std::string& path : options.profiles) {
    profiles.push_back(read_profile(path));
    const LatencyProfile& profile = profiles.back();
    if (options.here) {
      ProfileIdentity here = *options.here;
      here.model = profile.identity.model;  // each is of one of several models, but all compute
      for (const char* number : {"dtype", "arithmetic", "kv_dtype"}) {  // with the same numbers
        here.model.erase(number);
        if (const auto at = options.here->model.find(number); at != options.here->model.end())
          here.model.insert(*at);
      }
      const ProfileMatch match = compare_identity(profile.identity, here);
      TAPER_VALIDATE(match.refusals.empty(),
                     "--profile " << path_text(path)
                                  << " is not valid here: " << join(match.refusals, "; ")
                                  << "; measure one here with taper profile --passes");
      for (const std::string& warning : match.warnings)
        TAPER_WARN(path_text(path) << ": " << warning);
    }
    if (!profile.is_complete())
      TAPER_WARN(path_text(path) << " is " << completeness_problem(profile));
    if (const std::string noise = noise_problem(profile); !noise.empty())
      TAPER_WARN(path_text(path) << " is " << noise);
  }
  return profiles;
}

// The last generations of a run, or those that the run is expected to have.
std::vector<ReplayTrace> generations_of(const RunOptions& run, const std::string& lengths) {
  if (lengths.empty()) {
    if (run.rollout.lengths.empty())
      TAPER_WARN(
          "no response lengths are given: predicted times are those of log-normal ones up to the "
          "longest response allowed; name an earlier run with --lengths");
    const ModelFiles policy(run.model.directory, "Model/Directory");
    return expected_generations(run, policy, kGenerations);
  }
  std::vector<ReplayTrace> traces = read_traces("--lengths", lengths, run.rollout.max_running);
  if (std::ssize(traces) > kGenerations) traces.erase(traces.begin(), traces.end() - kGenerations);
  const RolloutOptions& o = run.rollout;
  for (ReplayTrace& trace : traces) {
    TAPER_VALIDATE(trace.work.samples == o.samples &&
                       std::ssize(trace.outcomes) == std::int64_t{o.prompts} * o.samples,
                   "--lengths " << path_text(lengths) << ": iteration " << trace.work.iteration
                                << " has " << trace.outcomes.size() << " responses, "
                                << trace.work.samples << " to a prompt (this run has " << o.prompts
                                << " prompts with " << o.samples
                                << "); name a run of the same batch, without dropped responses");
    const auto longest = std::max_element(trace.outcomes.begin(), trace.outcomes.end(),
                                          [](const Outcome& a, const Outcome& b) {
                                            return a.prompt + a.response < b.prompt + b.response;
                                          });
    TAPER_VALIDATE(longest->prompt + longest->response <= run.max_positions(),
                   "--lengths " << path_text(lengths) << " has a prompt and response of "
                                << longest->prompt + longest->response
                                << " tokens (this run has at most " << run.max_positions()
                                << "); raise " << kLengthLimits << ", or name another run");
    trace.work.step_rows = run.rollout.step_rows;
  }
  return traces;
}

PlannedPlacement planned(const PlacementCosts& costs, const FoundPlacement& found,
                         const std::string& name) {
  PlannedPlacement p;
  p.name = name;
  p.iteration_ns = found.iteration_ns;
  p.published_ns = found.published_ns;
  p.rank_bytes = found.rank_bytes;
  for (std::size_t m = 0; m < costs.models.size(); ++m)
    p.settings.emplace_back(costs.models[m].key, to_string(costs.option(found.choice, m).layout));
  costs.iteration_ns(found.choice, &p.calls);
  return p;
}

// A placement of place() as a choice; nothing if the prices do not have it.
std::optional<PlaceChoice> choice_of(const PlacementCosts& costs, const Placement& placement,
                                     const ModelSet& models) {
  PlaceChoice choice;
  for (const PlaceableModel& model : costs.models) {
    const std::optional<int> option = model.find(layout_of(model, placement, models));
    if (!option) return std::nullopt;
    choice.push_back(*option);
  }
  return choice;
}

// What runs do and predicted times leave out.
std::vector<std::string> left_out(const RunOptions& run) {
  std::vector<std::string> list;
  if (run.dynamic.on) list.emplace_back("Algorithm/Dynamic Sampling");
  if (!run.rollout.rounds.is_plain()) list.emplace_back("Rollout/Rounds");
  if (run.rollout.speculation.is_on()) list.emplace_back("Speculation");
  if (run.training.scores_early()) list.emplace_back("Training/Early Scoring and Early Learning");
  if (run.has_critic() && run.critic_in_use().warmup > 0)
    list.emplace_back("Critic/Warmup Iterations");
  return list;
}

// The placements that need no search, as far as they are possible.
std::vector<std::pair<std::string, PlaceChoice>> known_placements(const RunOptions& run,
                                                                  const PlacementCosts& costs,
                                                                  const DivisorChain& chain) {
  std::vector<std::pair<std::string, PlaceChoice>> list;
  const ModelSet models = placed(run, {}).models();
  for (const auto& [name, strategy] : named_placement_strategies()) {
    if (strategy == PlacementStrategy::kPlan) continue;
    RunOptions with = placed(run, {});
    with.placement.strategy = strategy;
    std::optional<PlaceChoice> choice;
    try {
      // With the blocks that a run of this strategy has.
      const DivisorChain own = chain_with(chain.ranks(), degrees_of(with, chain.ranks()));
      choice = choice_of(costs, place(with.placement, models, own), models);
    } catch (const Error&) {  // blocks too small for a model
    }
    if (choice && costs.is_possible(*choice))
      list.emplace_back(name, *choice);
    else
      TAPER_INFO("not listed: placement " << name << " (the plan has no such layouts)");
  }
  return list;
}

}  // namespace

std::vector<std::string> PlanOptions::problems() const {
  std::vector<std::string> list;
  if (profiles.empty())
    list.push_back("no --profile is given; measure one: taper profile --passes");
  if (!(memory_gib >= 0)) list.push_back("--memory-gib must not be negative");
  return list;
}

std::string PlannedPlacement::text() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : settings) {
    std::string model = name.substr(name.find('/') + 1);  // "Policy", "preferred/Ranks"
    if (name.starts_with("Rewards/"))
      model.resize(model.rfind('/'));
    else
      model.front() = static_cast<char>(std::tolower(model.front()));
    parts.push_back(model + " " + value);
  }
  return join(parts, ", ");
}

RunOptions placed(RunOptions run, const std::vector<Setting>& settings) {
  run.placement = {};
  for (RewardOptions& reward : run.rewards) reward.model.ranks.clear();
  for (const auto& [name, value] : settings) {
    if (name == "Placement/Policy") run.placement.policy = value;
    if (name == "Placement/Generation") run.placement.generation = value;
    if (name == "Placement/Reference") run.placement.reference = value;
    if (name == "Placement/Critic") run.placement.critic = value;
    for (RewardOptions& reward : run.rewards)
      if (name == "Rewards/" + reward.name + "/Ranks") reward.model.ranks = value;
  }
  return run;
}

PlannedPlacements plan_run(const RunOptions& run, const DivisorChain& chain,
                           const PlanOptions& options) {
  require_no_problems(options.problems(), "the arguments");
  TAPER_VALIDATE(run.rollout.layout.empty(),
                 "Rollout/Layout is "
                     << run.rollout.layout
                     << " (a plan says how the ranks that generate form replicas); "
                        "leave it out");
  const PlacementOptions& p = run.placement;
  const bool has_places =
      !(p.policy + p.generation + p.reference + p.critic).empty() ||
      std::ranges::any_of(run.rewards, [](const auto& r) { return !r.model.ranks.empty(); });
  if (has_places)
    TAPER_WARN("the ranks of models in the run file do not count: the plan places all models");
  if (const auto names = left_out(run); !names.empty())
    TAPER_WARN("predicted times are without " << join(names, ", ")
                                              << "; compare placements with --measure");
  const std::vector<LatencyProfile> profiles = read_profiles(options);
  const std::vector<ReplayTrace> traces = generations_of(run, options.lengths);
  PlacementCosts costs = price_run(run, chain, profiles, traces);
  costs.memory = static_cast<std::int64_t>(options.memory_gib * kGiB);
  const auto known = known_placements(run, costs, chain);
  std::vector<PlaceChoice> starts;
  for (const auto& [name, choice] : known) starts.push_back(choice);
  const Timer timer;
  const FoundPlacements found = search_placements(costs, options.search, starts);
  TAPER_VALIDATE(!found.list.empty(),
                 "--memory-gib is " << options.memory_gib
                                    << " (no placement of the models fits in it); plan for more "
                                       "ranks, or more memory");
  PlannedPlacements plans;
  plans.identity = profile_of_policy(run, profiles).identity;
  plans.seconds = timer.seconds();
  plans.examined = found.examined;
  plans.is_exhaustive = found.is_exhaustive;
  for (const FoundPlacement& f : found.list)
    plans.found.push_back(planned(costs, f, std::to_string(plans.found.size() + 1)));
  for (const auto& [name, choice] : known)
    plans.strategies.push_back(planned(
        costs,
        {choice, costs.iteration_ns(choice), costs.published_ns(choice), costs.rank_bytes(choice)},
        name));
  return plans;
}

const PlannedPlacement* PlannedPlacements::flattening() const {
  const auto at = std::find_if(strategies.begin(), strategies.end(),
                               [](const auto& p) { return p.name == "flattening"; });
  return at == strategies.end() ? nullptr : &*at;
}

PlacementFile placement_file(const RunOptions& run, const DivisorChain& chain,
                             const PlannedPlacements& plans) {
  PlacementFile file;
  file.ranks = chain.ranks();
  file.models = placed(run, {}).models().names();
  file.identity = plans.identity;
  file.seconds = seconds_of(plans.found.front().iteration_ns);
  if (const PlannedPlacement* flat = plans.flattening())
    file.flat_seconds = seconds_of(flat->iteration_ns);
  file.settings = plans.found.front().settings;
  return file;
}

std::string memory_problem(const RunOptions& placed, const Ranks& ranks, const MakeTrainJob& make,
                           std::int64_t& rank_bytes) {
  const std::unique_ptr<TrainJob> job = make(placed);
  // Counted for each rank, shared or not: the search counts so, too.
  std::vector<std::int64_t> bytes{job->memory_plan().total() + job->memory_plan().uncounted()};
  all_reduce_max(ranks.world(), bytes);
  rank_bytes = bytes.front();
  return taper::memory_problem(ranks, job->memory_plan(), "plan for more ranks");
}

void drop_too_large(PlannedPlacements& plans, const RunOptions& run, const Ranks& ranks,
                    const PlanOptions& options, const MakeTrainJob& make) {
  std::string why;
  const auto count = from_rank_0(ranks, [&] { return std::ssize(plans.found); });
  const auto limit = static_cast<std::int64_t>(options.memory_gib * kGiB);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto settings = from_rank_0(ranks, [&] { return plans.found.front().settings; });
    std::int64_t bytes = 0;
    why = memory_problem(placed(run, settings), ranks, make, bytes);
    if (why.empty() && limit > 0 && bytes > limit)
      why = "a rank needs " + format_bytes(static_cast<double>(bytes)) + ", more than --memory-gib";
    if (why.empty()) {
      if (ranks.rank() != 0) return;
      plans.found.front().rank_bytes = bytes;
      for (std::size_t k = 0; k < plans.found.size(); ++k)
        plans.found[k].name = std::to_string(k + 1);
      return;
    }
    if (ranks.rank() != 0) continue;
    TAPER_INFO("left out, because it does not fit: " << plans.found.front().text() << ": " << why);
    plans.found.erase(plans.found.begin());
  }
  TAPER_FAIL(ExitCode::kBadInput, "none of the best " << count
                                                      << " placements fits in memory: " << why
                                                      << "; list more of them with --top, or start "
                                                         "more ranks");
}

std::optional<double> time_placement(const RunOptions& run, const Ranks& ranks,
                                     const MakeTrainJob& make, const fs::path& directory,
                                     int iterations) {
  TAPER_EXPECT(iterations >= kFirstTimedIteration);
  on_rank_0(ranks, [&] {
    TAPER_VALIDATE(!fs::exists(directory),
                   path_text(directory) << " is in the way of a trial (left by an earlier one?); "
                                           "remove it");
  });
  RunOptions timed = run;
  timed.output = directory.string();
  timed.training.iterations = iterations;
  timed.checkpoint.every = 0;
  timed.evaluation = {};
  const RunDirectory place(timed.output);
  const JobLife life{.directory = place,
                     .status = StatusFile(place, iterations),
                     .outputs = {{"the trial " + path_text(directory), place.lock()}},
                     .config = "",
                     .resume = "none"};
  FailureNote note(life.status);
  const ExitCode code = life.live_on(ranks, note, [&](const Ranks&) { return make(timed); });
  const double seconds = from_rank_0(ranks, [&] {
    double sum = 0;
    int count = 0;
    if (code == ExitCode::kDone)
      for (const MetricsRecord& record : read_metrics_log(place.metrics())) {
        double step = 0, saved = 0;
        for (const auto& [name, value] : record.values) {
          if (name == "timing_s/step") step = value;
          if (name == "timing_s/save_checkpoint") saved = value;
        }
        if (record.iteration < kFirstTimedIteration || step == 0) continue;
        sum += step - saved;
        ++count;
      }
    fs::remove_all(directory);
    return sum / std::max(1, count);
  });
  if (code != ExitCode::kDone) return std::nullopt;
  TAPER_ENSURE(seconds > 0);
  return seconds;
}

bool time_placements(PlannedPlacements& plans, const RunOptions& run, const Ranks& ranks,
                     const MakeTrainJob& make, int most, int iterations) {
  const std::string directory = without_end_slash(run.output).string() + ".trial";
  const auto trial = [&](std::vector<PlannedPlacement> PlannedPlacements::*list, int first) {
    const auto count = from_rank_0(ranks, [&] { return static_cast<int>((plans.*list).size()); });
    for (int i = 0; i < std::min(count, first); ++i) {
      const auto settings = from_rank_0(ranks, [&] { return (plans.*list)[i].settings; });
      std::int64_t bytes = 0;
      const std::string lack = memory_problem(placed(run, settings), ranks, make, bytes);
      if (ranks.rank() == 0) (plans.*list)[i].rank_bytes = bytes;
      if (!lack.empty()) {
        if (ranks.rank() == 0) TAPER_WARN("not tried: " << (plans.*list)[i].name << ": " << lack);
        continue;
      }
      const auto seconds =
          time_placement(placed(run, settings), ranks, make, directory, iterations);
      if (!seconds) return false;
      if (ranks.rank() == 0) (plans.*list)[i].measured_s = seconds;
    }
    return true;
  };
  return trial(&PlannedPlacements::strategies,
               static_cast<int>(named_placement_strategies().size())) &&
         trial(&PlannedPlacements::found, most);
}

}  // namespace taper
