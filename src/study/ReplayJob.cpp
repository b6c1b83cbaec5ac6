// SPDX-License-Identifier: Apache-2.0
#include "study/ReplayJob.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Json.hpp"
#include "profile/ProfileFile.hpp"
#include "rollout/RecordedTraces.hpp"
#include "study/RoundStudy.hpp"

namespace taper {
namespace {

ReplayTrace described(LengthLaw law, int seed, int iteration, const ReplayOptions& o) {
  ReplayTrace trace;
  trace.work.iteration = iteration;
  trace.work.sequences = o.sequences;
  trace.work.prompt_tokens = std::int64_t{o.prompt_tokens} * o.sequences;
  trace.work.max_new_tokens = o.max_new_tokens > 0 ? o.max_new_tokens : 1024;
  trace.work.slots_per_rank = o.max_running;
  const auto lengths = draw_lengths(law, static_cast<std::uint64_t>(seed), iteration, o.sequences,
                                    trace.work.max_new_tokens);
  for (int i = 0; i < o.sequences; ++i)
    trace.outcomes.push_back({i, o.prompt_tokens, lengths[i], false});
  return trace;
}

OrderedJson to_json(const SimulatedSwitch& s) {
  return {{"at_ns", s.made.at_ns},
          {"layout", to_string(s.made.layout)},
          {"repack", s.made.repack == Repack::kYes},
          {"alive", s.alive},
          {"predicted_saving_ns", s.predicted.mean},
          {"predicted_saving_low_ns", s.predicted.low},
          {"saved_ns", s.saved_ns},
          {"cost_ns", s.cost_ns},
          {"kv_bytes", s.kv_bytes}};
}

OrderedJson to_json(const ReplayResult& result, std::size_t run, const GenerationAccount& g) {
  OrderedJson line{{"name", result.name},
                   {"run", run},
                   {"iteration", g.iteration},
                   {"first_layout", to_string(g.adaptive.first)},
                   {"adaptive_ns", g.adaptive.time_ns},
                   {"static_ns", g.static_ns},
                   {"oracle_ns", g.oracle.time_ns},
                   {"myopic_ns", g.myopic_ns},
                   {"switching_ns", g.adaptive.switching_ns},
                   {"consultations", g.adaptive.consultations}};
  line["switches"] = OrderedJson::array();
  for (const SimulatedSwitch& s : g.adaptive.switches) line["switches"].push_back(to_json(s));
  line["oracle_switches"] = OrderedJson::array();
  for (const ReplaySwitch& s : g.oracle.switches)
    line["oracle_switches"].push_back({{"at_ns", s.at_ns},
                                       {"layout", to_string(s.layout)},
                                       {"repack", s.repack == Repack::kYes}});
  line["forecasts"] = {{"count", g.forecasts.count},
                       {"below_low", g.forecasts.below_low},
                       {"below_mean", g.forecasts.below_mean},
                       {"below_high", g.forecasts.below_high}};
  return line;
}

}  // namespace

std::vector<std::string> ReplayOptions::problems() const {
  std::vector<std::string> list = planner.problems();
  if (profile.empty())
    list.push_back("--profile is not set (step times are needed); measure one with taper profile");
  if (runs.empty() == laws.empty())
    list.push_back("response lengths are needed from either --run or --law (give one of them)");
  const auto add_below = [&](const char* what, int value, int least) {
    if (value < least)
      list.push_back(
          format_text("%s is %d (it must be at least %d); raise it", what, value, least));
  };
  add_below("--seeds", seeds, 1);
  add_below("--iterations", iterations, 1);
  add_below("--warm-up", account.warm_up, 0);
  add_below("--sequences", sequences, 1);
  add_below("--samples", samples, 1);
  add_below("--prompt-tokens", prompt_tokens, 1);
  add_below("--max-new-tokens", max_new_tokens, 0);
  add_below("--max-running", max_running, 1);
  add_below("--ranks", ranks, 0);
  add_below("the grid of the oracle", account.grid, 1);
  return list;
}

namespace {

// The generations of a recorded run with the limits of the options.
std::vector<ReplayTrace> recorded(const std::string& run, const ReplayOptions& o) {
  std::vector<ReplayTrace> traces = read_traces("--run", run, o.max_running);
  for (ReplayTrace& t : traces) {
    TAPER_VALIDATE(o.max_new_tokens == 0 || t.work.max_new_tokens <= o.max_new_tokens,
                   "--max-new-tokens is " << o.max_new_tokens << " (" << path_text(run)
                                          << " has responses of " << t.work.max_new_tokens
                                          << " tokens); raise it or leave it out");
    if (o.max_new_tokens > 0) t.work.max_new_tokens = o.max_new_tokens;
  }
  return traces;
}

// What lengths are played on.
struct ReplayMachine {
  explicit ReplayMachine(const ReplayOptions& o)
      : machine(read_complete(o.profile)),
        chain(DivisorChain::of(o.ranks > 0 ? o.ranks : machine.profile.ranks)) {
    require_degrees(machine.profile, o.planner.degrees);
    for (const int tp : o.planner.degrees.empty() ? machine.profile.degrees() : o.planner.degrees)
      if (chain.has(tp)) degrees.push_back(tp);
  }

  static LatencyProfile read_complete(const std::string& path) {
    LatencyProfile profile = read_profile(path);
    if (!profile.is_complete())
      TAPER_WARN(path_text(path) << " is " << completeness_problem(profile));
    return profile;
  }

  SimulatedMachine machine;
  DivisorChain chain;
  std::vector<int> degrees;
};

RoundSetting round_setting(const ReplayOptions& o, const ReplayMachine& m) {
  RoundSetting setting;
  setting.work.slots_per_rank = o.max_running;
  setting.degrees = m.degrees;
  setting.chain = m.chain;
  setting.planner = o.planner;
  setting.iterations = o.iterations;
  return setting;
}

// The prompts of a run in the order in which it trained them.
RoundSetting recorded_rounds(const std::string& run, const ReplayOptions& o,
                             const ReplayMachine& m) {
  const auto traces = recorded(run, o);
  TAPER_VALIDATE(std::ssize(traces) >= 6,
                 path_text(run) << " has " << count_text(std::ssize(traces), "generation")
                                << " (too few to play rounds, at least 6 are needed); name a "
                                   "longer run");
  RoundSetting setting = round_setting(o, m);
  const Workload& first = traces.front().work;
  setting.samples = first.samples;
  setting.prompts = first.sequences / first.samples;
  setting.prompt_tokens = first.prompt_tokens / first.sequences;
  setting.work.max_new_tokens = first.max_new_tokens;
  setting.long_tokens = first.max_new_tokens / 2;
  std::vector<int> lengths;
  for (const ReplayTrace& t : traces) {
    TAPER_VALIDATE(t.work.samples == setting.samples && t.work.sequences == first.sequences,
                   path_text(run) << ": generation " << t.work.iteration << " has "
                                  << t.work.sequences << " responses, the first has "
                                  << first.sequences
                                  << " (rounds are played over equal generations); name a run "
                                     "without dynamic sampling and dropped responses");
    for (const Outcome& r : t.outcomes) lengths.push_back(std::max(1, r.response));
  }
  setting.stream = std::ssize(lengths) / setting.samples;
  setting.iterations = static_cast<int>(std::ssize(traces)) / 3;
  setting.length = [lengths = std::move(lengths), samples = setting.samples](std::int64_t number,
                                                                             int sample) {
    return lengths.at(static_cast<std::size_t>(number * samples + sample));
  };
  return setting;
}

RoundSetting described_rounds(LengthLaw law, const ReplayOptions& o, const ReplayMachine& m) {
  RoundSetting setting = round_setting(o, m);
  setting.samples = o.samples;
  setting.prompts = std::max(1, o.sequences / o.samples);
  setting.prompt_tokens = o.prompt_tokens;
  const int limit = o.max_new_tokens > 0 ? o.max_new_tokens : 1024;
  setting.work.max_new_tokens = limit;
  setting.long_tokens = limit / 2;
  setting.length = drawn_by_iteration(
      setting.prompts, setting.samples,
      [=, count = setting.prompts * setting.samples, seed = o.planner.seed](
          std::int64_t iteration) { return draw_lengths(law, seed, iteration, count, limit); });
  return setting;
}

}  // namespace

std::vector<ReplayResult> replay(const ReplayOptions& o) {
  require_no_problems(o.problems(), "replay");
  ReplayMachine m(o);
  std::vector<ReplayResult> results;
  const auto add = [&](ReplayResult& result, const std::vector<ReplayTrace>& traces, int seed) {
    PlannerOptions planner = o.planner;
    planner.seed += static_cast<std::uint64_t>(seed);
    result.runs.push_back(account(traces, planner, m.degrees, m.chain, m.machine, o.account));
    add_run(result.summary, result.runs.back());
  };
  for (const std::string& run : o.runs) {
    const auto traces = recorded(run, o);
    TAPER_VALIDATE(o.account.warm_up < std::ssize(traces),
                   "--warm-up is " << o.account.warm_up << " (" << path_text(run) << " has "
                                   << count_text(std::ssize(traces), "generation")
                                   << "); make it smaller");
    m.machine.steps.set_drafts(read_drafts(run));
    add(results.emplace_back(ReplayResult{run, {}, {}}), traces, 0);
  }
  for (const LengthLaw law : o.laws) {
    ReplayResult& result = results.emplace_back(ReplayResult{to_string(law), {}, {}});
    for (int seed = 0; seed < o.seeds; ++seed) {
      std::vector<ReplayTrace> traces;
      for (int i = 0; i < o.account.warm_up + o.iterations; ++i)
        traces.push_back(described(law, seed, i, o));
      add(result, traces, seed);
    }
  }
  return results;
}

std::string replay_rounds(const ReplayOptions& o) {
  require_no_problems(o.problems(), "replay");
  ReplayMachine m(o);
  std::string table = round_head();
  for (const std::string& run : o.runs) {
    m.machine.steps.set_drafts(read_drafts(run));
    table += round_rows(run, study_rounds(recorded_rounds(run, o, m), m.machine));
  }
  for (const LengthLaw law : o.laws)
    table += round_rows(to_string(law), study_rounds(described_rounds(law, o, m), m.machine));
  return table + round_legend();
}

namespace {

constexpr const char* kLegend = R"(
lengths   the run or the distribution of lengths
gener.    number of generations
faster    time saved against the best static layout
room      time that the oracle saves, in generations in which it saves 2 % or more
share     share of the room that the planner saves
rule      share saved by the best rule that one could have set by hand, determined afterwards for
          each run: change, or even out, as soon as so many sequences are left
myopic    share saved by a rule that compares only staying with switching now
switches  changes of layout
false     changes that lost time: staying would have been faster
missed    generations with room in which the planner saves less than half of it
worse     mean loss against the best static layout, if there is a loss
p95       95th percentile of the loss over the generations (negative: faster)
below q   tails that ended before the lower / the upper quantile of their forecast
)";

}  // namespace

std::string to_table(const std::vector<ReplayResult>& results) {
  std::size_t width = 16;
  for (const ReplayResult& r : results) width = std::max(width, r.name.size());
  const int column = static_cast<int>(width);
  std::string table = format_text("%-*s %6s %7s %7s %7s %7s %7s %8s %6s %6s %8s %8s %9s\n", column,
                                  "lengths", "gener.", "faster", "room", "share", "rule", "myopic",
                                  "switches", "false", "missed", "worse", "p95", "below q");
  for (const ReplayResult& r : results) {
    const AccountSummary& s = r.summary;
    const auto percent = [](double x) { return 100.0 * x; };
    const double all = static_cast<double>(std::max<std::int64_t>(1, s.static_ns));
    const double n = std::max(1, s.forecasts.count);
    table += format_text(
        "%-*s %6d %6.2f%% %6.2f%% %6.1f%% %6.1f%% %6.1f%% %8d %6d %6d %7.3f%% %7.2f%% "
        "%4.0f/%.0f%%\n",
        column, r.name.c_str(), s.generations,
        percent(static_cast<double>(s.static_ns - s.adaptive_ns) / all),
        percent(static_cast<double>(s.room_ns) / all), percent(s.share()), percent(s.rule_share()),
        percent(s.myopic_share()), s.switches, s.false_triggers, s.missed, percent(s.mean_slower()),
        percent(s.slower_quantile(95)), percent(s.forecasts.below_low / n),
        percent(s.forecasts.below_high / n));
  }
  return table + kLegend;
}

std::string to_json_lines(const std::vector<ReplayResult>& results) {
  std::string text;
  for (const ReplayResult& r : results)
    for (std::size_t run = 0; run < r.runs.size(); ++run)
      for (const GenerationAccount& g : r.runs[run]) text += to_json(r, run, g).dump() + "\n";
  return text;
}

}  // namespace taper
