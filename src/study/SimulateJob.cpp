// SPDX-License-Identifier: Apache-2.0
#include "study/SimulateJob.hpp"

#include <algorithm>
#include <cmath>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "study/DescribedPlacements.hpp"
#include "study/RoundStudy.hpp"

namespace taper {
namespace {

int sequences_of(const SimulateOptions& o) {
  return o.generation.prompts_per_rank * o.generation.samples * o.machine.ranks;
}

// Positions that a response which starts with all others holds on average where they hold most.
double peak_positions(const GenerationDescription& g) {
  double peak = 0;
  for (int n = 1; n < g.max_new_tokens; n += 1 + n / 64)
    peak = std::max(peak, g.lengths.share_above(n) * (g.prompt_tokens + n));
  return peak;
}

std::vector<ReplayTrace> traces_of(const SimulateOptions& o, const SimulatedSetting& setting,
                                   std::uint64_t seed) {
  const GenerationDescription& g = o.generation;
  std::vector<ReplayTrace> traces;
  for (int i = 0; i < o.play.warm_up + o.play.iterations; ++i) {
    ReplayTrace trace;
    trace.work.iteration = i;
    trace.work.sequences = sequences_of(o);
    trace.work.samples = g.samples;
    trace.work.prompt_tokens = std::int64_t{g.prompt_tokens} * trace.work.sequences;
    trace.work.max_new_tokens = g.max_new_tokens;
    trace.work.slots_per_rank = setting.slots_per_rank;
    const auto lengths = draw_lengths(g.lengths, seed, i, g.prompts_per_rank * o.machine.ranks,
                                      g.samples, g.max_new_tokens);
    for (std::size_t s = 0; s < lengths.size(); ++s)
      trace.outcomes.push_back({static_cast<std::int64_t>(s), g.prompt_tokens, lengths[s], false});
    traces.push_back(std::move(trace));
  }
  return traces;
}

void add(SimulatedCase& c, const std::vector<GenerationAccount>& run) {
  for (const GenerationAccount& g : run) {
    ++c.generations;
    for (std::size_t k = 0; k < c.static_ns.size(); ++k) c.static_ns[k] += g.static_ns[k];
    c.adaptive_ns += g.adaptive.time_ns;
    c.myopic_ns += g.myopic_ns;
    c.oracle_ns += g.oracle.time_ns;
    c.switching_ns += g.adaptive.switching_ns;
    c.switches += static_cast<int>(g.adaptive.switches.size());
    c.first = g.adaptive.first.groups().front().tp;
  }
}

}  // namespace

DraftTable DraftDescription::table() const {
  DraftShares shares;
  double right = coverage;
  for (int i = 0; i < DraftShares::kLengths; ++i) {
    right *= acceptance;
    shares.drafted[i] = static_cast<std::uint8_t>(std::lround(coverage * DraftShares::kShareOne));
    shares.accepted[i] = static_cast<std::uint8_t>(std::lround(right * DraftShares::kShareOne));
  }
  DraftTable table;
  table.observe(1, shares);  // the same for any number of sequences
  return table;
}

std::vector<std::string> SimulateOptions::problems() const {
  std::vector<std::string> list;
  if (generation.lengths.long_tokens >= generation.max_new_tokens)
    list.push_back("Generation/Long Tokens is " + std::to_string(generation.lengths.long_tokens) +
                   " (no response is longer than Generation/Max New Tokens, which is " +
                   std::to_string(generation.max_new_tokens) + "); make it smaller");
  return list;
}

SimulatedSetting setting_of(const SimulateOptions& o) {
  SimulatedSetting s;
  const std::vector<int> possible = possible_degrees(o.machine, o.model);
  TAPER_VALIDATE(!possible.empty(),
                 "Machine/Device/Memory GB is "
                     << o.machine.device.memory_gb << " (the weights of " << o.model.name
                     << " fit at no tensor-parallel degree up to its " << o.model.kv_heads
                     << " KV heads); describe more memory or a smaller model");
  for (const int tp : o.play.degrees)
    TAPER_VALIDATE(std::find(possible.begin(), possible.end(), tp) != possible.end(),
                   "Play/Degrees has " << tp << " (possible here: " << possible.front() << " to "
                                       << possible.back() << "); leave it out");
  s.degrees = o.play.degrees.empty() ? possible : o.play.degrees;
  std::sort(s.degrees.begin(), s.degrees.end());
  s.kv_bytes_per_position = o.model.kv_bytes_per_position();
  s.peak_positions = peak_positions(o.generation);
  const auto slots = [&](int tp) {
    const double one = s.peak_positions * static_cast<double>(s.kv_bytes_per_position);
    return static_cast<int>(std::min(1e6, kv_pool_bytes(o.machine, o.model, tp) / one));
  };
  // Degrees whose memory holds all sequences at once, if there are any: nothing waits then. The
  // smallest degree in use decides how much there is, since larger ones keep its shards.
  const int wanted = std::min(o.generation.max_running, sequences_of(o) / o.machine.ranks);
  if (o.play.degrees.empty() && slots(s.degrees.back()) >= wanted)
    std::erase_if(s.degrees, [&](int tp) { return slots(tp) < wanted; });
  s.slots_per_rank = std::clamp(slots(s.degrees.front()), 1, o.generation.max_running);
  s.weight_gb = o.model.parameters() * o.model.weight_bytes / s.degrees.front() / 1e9;
  s.pool_gb = kv_pool_bytes(o.machine, o.model, s.degrees.front()) / 1e9;
  return s;
}

ReplayTrace first_trace(const SimulateOptions& options, const SimulatedSetting& setting) {
  return traces_of(options, setting, options.play.seed).front();
}

double SimulatedCase::saved(std::int64_t ns) const {
  return 1.0 - static_cast<double>(ns) / static_cast<double>(best_ns());
}

double SimulatedCase::speed_up(std::int64_t ns) const {
  return 1.0 / (1.0 - share * saved(ns));
}

double SimulatedCase::tokens_per_second() const {
  return static_cast<double>(tokens) * share * 1e9 / static_cast<double>(best_ns()) / ranks;
}

std::string simulate_rounds(const SimulateOptions& o, const std::string& name) {
  const SimulatedSetting described = setting_of(o);
  const GenerationDescription& g = o.generation;
  const LatencyProfile profile =
      describe_profile(o.machine, o.model, o.switching, described.degrees,
                       {2 * sequences_of(o), g.prompt_tokens + g.max_new_tokens});
  SimulatedMachine machine(profile);
  machine.steps.set_drafts(g.drafts.table());
  RoundSetting setting;
  setting.prompts = g.prompts_per_rank * o.machine.ranks;
  setting.samples = g.samples;
  setting.work.max_new_tokens = g.max_new_tokens;
  setting.work.slots_per_rank = described.slots_per_rank;
  setting.prompt_tokens = g.prompt_tokens;
  setting.has_more_samples = true;
  setting.iterations = o.play.iterations;
  setting.long_tokens = g.lengths.long_tokens;
  setting.degrees = described.degrees;
  setting.chain = DivisorChain::of(o.machine.ranks);
  setting.planner.seed = o.play.seed;
  setting.planner.degrees = described.degrees;
  const auto lengths = [&](std::uint64_t seed) {
    const int samples = 2 * g.samples;  // more than any way starts
    return drawn_by_iteration(
        setting.prompts, samples, [=, prompts = setting.prompts](std::int64_t iteration) {
          return draw_lengths(g.lengths, seed, iteration, prompts, samples, g.max_new_tokens);
        });
  };
  setting.length = lengths(o.play.seed);
  setting.redrawn = lengths(o.play.seed + (std::uint64_t{1} << 32));
  return round_rows(name, study_rounds(setting, machine));
}

SimulatedCase simulate(const SimulateOptions& o, const std::string& name) {
  const SimulatedSetting setting = setting_of(o);
  SimulatedCase c;
  c.name = name;
  c.ranks = o.machine.ranks;
  c.degrees = setting.degrees;
  c.static_ns.assign(c.degrees.size(), 0);
  c.published = o.published;
  const LatencyProfile profile =
      describe_profile(o.machine, o.model, o.switching, c.degrees,
                       {sequences_of(o), o.generation.prompt_tokens + o.generation.max_new_tokens});
  SimulatedMachine machine(profile);
  machine.steps.set_drafts(o.generation.drafts.table());
  const DivisorChain chain = DivisorChain::of(o.machine.ranks);
  for (int run = 0; run < o.play.seeds; ++run) {
    const std::uint64_t seed = o.play.seed + static_cast<std::uint64_t>(run);
    const std::vector<ReplayTrace> traces = traces_of(o, setting, seed);
    PlannerOptions planner;
    planner.seed = seed;
    planner.degrees = c.degrees;
    add(c,
        account(traces, planner, c.degrees, chain, machine, {o.play.oracle_grid, o.play.warm_up}));
    const OneSwitchResult one =
        play_one_switch(traces, machine, c.degrees, chain, planner, o.play.warm_up, o.one_switch);
    c.one_switch.first = one.first;
    c.one_switch.time_ns += one.time_ns;
    c.one_switch.switches += one.switches;
    for (std::size_t i = static_cast<std::size_t>(o.play.warm_up); i < traces.size(); ++i)
      for (const Outcome& r : traces[i].outcomes) c.tokens += r.prompt + r.response;
  }
  c.best = static_cast<int>(std::min_element(c.static_ns.begin(), c.static_ns.end()) -
                            c.static_ns.begin());
  c.share = o.generation.share;
  if (c.share == 0)
    c.share = generation_share(price_case(o, first_trace(o, setting), c.degrees),
                               static_cast<double>(c.best_ns()) / c.generations);
  return c;
}

}  // namespace taper
