// SPDX-License-Identifier: Apache-2.0
#include "predict/Policy.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "predict/LengthModel.hpp"
#include "predict/PlanSearch.hpp"
#include "predict/RegretBudget.hpp"
#include "predict/Replay.hpp"
#include "predict/Scenarios.hpp"
#include "predict/StepModel.hpp"
#include "predict/SwitchCost.hpp"

namespace taper {
namespace {

// Work of one decision: sequences x scenarios x plans that keep it within a millisecond.
constexpr int kMostDraws = 4096;
constexpr std::uint64_t kStateVersion = 2;

std::uint64_t hash_of(const Snapshot& s, const Plan& plan, bool act) {
  return fnv1a(std::to_string(s.epoch) + " " + std::to_string(s.consultation) + " " +
               to_string(plan) + (act ? " act" : ""));
}

}  // namespace

std::vector<std::string> PolicyOptions::problems() const {
  std::vector<std::string> list;
  if (scenarios < 32 || scenarios > 64) list.push_back("scenarios must be in [32, 64]");
  if (low_percent < 1 || low_percent > 50) list.push_back("low_percent must be in [1, 50]");
  if (max_switches < 0) list.push_back("max_switches must not be negative");
  if (budget_ppm < 0 || fallback_ppm < 0) list.push_back("budgets must not be negative");
  if (half_life < 1) list.push_back("half_life must be at least 1 iteration");
  if (consult_ns < 0 || consult_steps < 1)
    list.push_back("the period of consultation must be positive");
  for (const int tp : degrees)
    if (tp < 1) list.push_back("tensor-parallel degrees must be positive");
  return list;
}

struct Policy::State {
  State(const LatencyProfile& p, const DivisorChain& c, const PolicyOptions& o)
      : profile(p),
        chain(c),
        options(o),
        steps(profile),
        cost(profile),
        lengths(o.half_life),
        scenarios(o.seed, o.scenarios),
        budget(o.budget_ppm, o.fallback_ppm) {}

  // Stable addresses: runs refer to shapes.
  const LayoutShape& shape(const Layout& layout) {
    for (const LayoutShape& s : shapes)
      if (s.layout == layout) return s;
    return shapes.emplace_back(resolve(layout, steps));
  }

  void observe(const Snapshot& snapshot);
  void notice_refusal(const Snapshot& snapshot);
  bool fits(const LayoutShape& to, std::span<const SequenceState> sequences,
            std::span<const SequenceMove> moves) const;
  PlanSetting setting() {
    return {uniform,
            chain,
            degrees,
            steps,
            cost,
            lengths,
            scenarios,
            [this](const Layout& layout) -> const LayoutShape& { return shape(layout); },
            work.slots_per_rank,
            options.look_ahead,
            options.mixed_groups,
            options.repack};
  }
  int scenarios_for(int sequences) const {
    return std::clamp(kMostDraws / std::max(1, sequences), 8, options.scenarios);
  }
  std::int64_t mean_prompt() const { return work.prompt_tokens / std::max(1, work.sequences); }
  std::int64_t expected_ns(const LayoutShape& shape);

  LatencyProfile profile;
  DivisorChain chain;
  PolicyOptions options;
  std::vector<int> degrees;  // ascending
  StepModel steps;
  SwitchCost cost;
  LengthModel lengths;
  Scenarios scenarios;
  RegretBudget budget;
  std::deque<LayoutShape> shapes;
  std::vector<const LayoutShape*> uniform;  // by degree

  // The present generation.
  Workload work;
  std::string first_layout;
  int switches = 0;
  std::vector<ReplaySwitch> made;
  // The snapshot before, for what ended since.
  std::vector<std::int64_t> last;  // see observe()
  // A decision to act after which the epoch stays the same was refused at the meeting; meetings
  // cost time, so after several refusals the next one has to wait.
  std::int64_t acted_in_epoch = -1;
  std::int64_t refusals = 0, wait_until = 0;
};

Policy::Policy(const LatencyProfile& profile, const DivisorChain& chain,
               const PolicyOptions& options) {
  for (const auto& problem : options.problems())
    TAPER_FAIL(ExitCode::kBadInput, "layout policy: " << problem);
  require_degrees(profile, options.degrees);
  state_ = std::make_unique<State>(profile, chain, options);
  State& s = *state_;
  for (const int tp : options.degrees.empty() ? profile.degrees() : options.degrees)
    if (chain.has(tp)) s.degrees.push_back(tp);
  std::sort(s.degrees.begin(), s.degrees.end());
  TAPER_VALIDATE(!s.degrees.empty(),
                 "no tensor-parallel degree of the profile divides " << chain.ranks() << " ranks");
  for (const int tp : s.degrees) s.uniform.push_back(&s.shape(Layout::uniform(tp, chain)));
}
Policy::~Policy() = default;
Policy::Policy(Policy&&) noexcept = default;

bool Policy::State::fits(const LayoutShape& to, std::span<const SequenceState> sequences,
                         std::span<const SequenceMove> moves) const {
  if (work.kv_blocks.empty()) return true;
  std::vector<int> blocks(to.curves.size(), 0);
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (sequences[i].context > 0)
      blocks[moves[i].to] += (sequences[i].context + work.block_size) / work.block_size;
  for (std::size_t r = 0; r < blocks.size(); ++r) {
    const auto at = work.kv_blocks.find(to.layout.groups()[r].tp);
    if (at != work.kv_blocks.end() && blocks[r] > at->second) return false;
  }
  return true;
}

// A whole generation started in this layout, with the switches that are likely to follow.
std::int64_t Policy::State::expected_ns(const LayoutShape& shape) {
  const auto sequences = initial_sequences(work.sequences, work.samples, mean_prompt(),
                                           work.max_new_tokens, shape.layout.replicas());
  const int count = std::clamp(4 * kMostDraws / std::max(1, work.sequences), 4, options.scenarios);
  const Pricer pricer(scenarios, count, sequences, shape, cost, lengths, work.slots_per_rank);
  std::vector<std::vector<SwitchRule>> ways{{}};
  if (options.mode == PolicyMode::kAdaptive && options.look_ahead)
    ways = ways_on(setting(), shape, work.sequences, mean_prompt() + work.max_new_tokens / 4);
  std::int64_t best_ns = std::numeric_limits<std::int64_t>::max();
  for (const auto& way : ways) {
    PricedPlan plan(stay_in(shape.layout), way);
    pricer.price(plan, count);
    best_ns = std::min(best_ns, plan.mean());
  }
  return best_ns;
}

Layout Policy::begin(const Workload& workload) {
  State& s = *state_;
  s.work = workload;
  s.switches = 0;
  s.made.clear();
  s.last.clear();
  s.acted_in_epoch = -1;
  s.refusals = s.wait_until = 0;
  s.lengths.begin(std::max(1, workload.max_new_tokens));
  s.scenarios.begin(workload.iteration);
  const LayoutShape* best = s.uniform.front();
  if (!s.options.initial.empty()) {
    best = &s.shape(parse_layout(s.options.initial, s.chain));
  } else if (s.budget.prefers_static()) {
    best = s.uniform[s.budget.best_static()];
  } else if (s.lengths.weight() == 0) {
    for (const SwitchRule& rule : ladder(s.setting(), *best, workload.sequences, s.mean_prompt()))
      if (rule.alive >= workload.sequences) best = rule.shape;
  } else {
    std::int64_t best_ns = std::numeric_limits<std::int64_t>::max();
    for (const LayoutShape* shape : s.uniform)
      if (const std::int64_t ns = s.expected_ns(*shape); ns < best_ns) {
        best = shape;
        best_ns = ns;
      }
  }
  s.first_layout = to_string(best->layout);
  return best->layout;
}

// Learns the scale of step times, and of the hazards from how many sequences ended since the last
// snapshot of the same epoch. `last` holds: epoch, elapsed, finished, then for each replica with
// running sequences and each bucket: count, length, step time.
void Policy::State::observe(const Snapshot& now) {
  std::map<int, std::vector<int>> speeds;
  for (std::size_t r = 0; r < now.replicas.size(); ++r)
    if (now.replicas[r].speed > 0)
      speeds[now.layout.groups()[r].tp].push_back(now.replicas[r].speed);
  for (auto& [tp, list] : speeds) {
    std::nth_element(list.begin(), list.begin() + list.size() / 2, list.end());
    steps.observe(tp, list[list.size() / 2]);
  }
  if (last.size() >= 3 && last[0] == now.epoch && now.elapsed_ns > last[1]) {
    std::int64_t expected = 0, ended = now.finished() - last[2], at_risk = 0, growth = 0;
    for (std::size_t i = 3; i < last.size(); i += 3) {
      const std::int64_t count = last[i], from = last[i + 1], step = last[i + 2];
      const std::int64_t to = from + (now.elapsed_ns - last[1]) / std::max<std::int64_t>(1, step);
      if (to >= lengths.limit()) {
        ended -= count;
        continue;
      }
      expected += count * lengths.expected_ends(static_cast<int>(from), static_cast<int>(to));
      at_risk += count;
      growth += count * ((to - from) * 1024 / std::max<std::int64_t>(1, from));
    }
    if (at_risk > 0)
      lengths.observe(expected, static_cast<int>(std::max<std::int64_t>(0, ended)),
                      static_cast<int>(growth / at_risk));
  }
  last = {now.epoch, now.elapsed_ns, now.finished()};
  const auto sequences = expand(now, 0, lengths.limit());
  const LayoutShape& here = shape(now.layout);
  for (std::size_t i = 0; i < sequences.size();) {
    std::size_t j = i;
    while (j < sequences.size() && sequences[j].replica == sequences[i].replica &&
           sequences[j].response == sequences[i].response &&
           sequences[j].context == sequences[i].context)
      ++j;
    const int r = sequences[i].replica;
    if (sequences[i].context > 0)
      last.insert(last.end(),
                  {static_cast<std::int64_t>(j - i), sequences[i].response,
                   here.curves[r]->decode_ns(now.replicas[r].running(), now.replicas[r].context)});
    i = j;
  }
}

void Policy::State::notice_refusal(const Snapshot& now) {
  if (acted_in_epoch < 0) return;
  refusals = now.epoch == acted_in_epoch ? refusals + 1 : 0;
  acted_in_epoch = -1;
  if (refusals > 0)
    wait_until =
        now.consultation - 1 + (std::int64_t{1} << std::min<std::int64_t>(refusals - 1, 5));
}

Decision Policy::decide(const Snapshot& snapshot) {
  State& s = *state_;
  const Plan stay_plan = stay_in(snapshot.layout);
  Decision decision{false, stay_plan, {}, "", 0};
  const auto answer = [&](const std::string& reason) {
    decision.reason = reason;
    decision.hash = hash_of(snapshot, decision.plan, decision.act);
    return decision;
  };
  if (s.options.mode == PolicyMode::kStatic) return answer("static");
  s.observe(snapshot);
  s.notice_refusal(snapshot);
  const int alive = snapshot.alive();
  if (alive == 0) return answer("nothing left");
  if (s.switches >= s.options.max_switches) return answer("no switch left in this generation");
  if (s.budget.exhausted()) return answer("switching has lost too much of late");
  const auto sequences = expand(snapshot, s.mean_prompt(), s.lengths.limit());
  const PlanSetting setting = s.setting();
  const auto plans =
      PlanSearch(setting, s.shape(snapshot.layout), sequences, s.scenarios_for(alive)).search();
  if (plans.front().rest_ns.empty()) return answer("no layout would be faster now");
  std::size_t best = 0;
  std::vector<PriceRange> savings;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    savings.push_back(
        range_of(difference(plans.front().rest_ns, plans[i].rest_ns), s.options.low_percent));
    decision.prices.push_back({plans[i].plan, range_of(plans[i].rest_ns, s.options.low_percent),
                               savings.back(), plans[i].cost_ns});
    if (plans[i].mean() < plans[best].mean()) best = i;
  }
  decision.plan = plans[best].plan;
  if (best == 0) return answer("staying is fastest");
  if (decision.plan.start != PlanStart::kNow) return answer("a later switch is better");
  if (savings[best].low <= 0) return answer("the saving is uncertain");
  if (!s.budget.affords(plans[best].cost_ns, snapshot.elapsed_ns))
    return answer("the switching budget is spent");
  if (snapshot.consultation < s.wait_until) return answer("refused at the last meetings");
  decision.act = s.options.mode == PolicyMode::kAdaptive;
  if (decision.act) s.acted_in_epoch = snapshot.epoch;
  return answer("switching pays");
}

Confirmation Policy::confirm(const Plan& plan, const Snapshot& snapshot,
                             std::span<const SequenceState> exact) {
  State& s = *state_;
  Confirmation result;
  const LayoutShape &here = s.shape(snapshot.layout), &to = s.shape(plan.layout);
  // Groups that the plan leaves alone are as in the snapshot.
  std::vector<SequenceState> sequences(exact.begin(), exact.end());
  std::vector<bool> known(here.curves.size(), false);
  for (std::size_t g = 0; g < known.size(); ++g) {
    const auto& after = to.layout.groups();
    known[g] = plan.repack ||
               std::find(after.begin(), after.end(), here.layout.groups()[g]) == after.end();
  }
  for (const SequenceState& q : expand(snapshot, 0, s.lengths.limit()))
    if (!known[q.replica]) sequences.push_back(q);
  result.moves = place_sequences(here.layout, to.layout, plan.repack, exact);
  result.cost = s.cost.price(here.layout, to, exact, result.moves);
  const auto answer = [&](bool act, const std::string& reason) {
    result.act = act;
    result.reason = reason;
    result.hash = hash_of(snapshot, plan, act);
    for (const SequenceMove& m : result.moves)
      result.hash = fnv1a(std::to_string(m.id) + " " + std::to_string(m.to) + " " +
                              std::to_string(static_cast<int>(m.kv)),
                          result.hash);
    return result;
  };
  if (exact.empty()) return answer(false, "nothing left");
  if (!s.fits(to, exact, result.moves)) return answer(false, "it does not fit in the KV cache");
  const PlanSetting setting = s.setting();
  const auto plans =
      PlanSearch(setting, here, sequences, s.scenarios_for(static_cast<int>(sequences.size())))
          .compare(to, plan.repack);
  result.saving = range_of(difference(plans[0].rest_ns, plans[1].rest_ns), s.options.low_percent);
  if (result.saving.mean <= 0 || result.saving.low <= 0) return answer(false, "it no longer pays");
  return answer(true, "confirmed");
}

void Policy::switched(const Plan& plan, const Confirmation&, std::int64_t measured_ns) {
  State& s = *state_;
  ++s.switches;
  s.budget.spend(measured_ns);
  s.made.push_back({s.last.size() > 1 ? s.last[1] : 0, plan.layout, plan.repack});
}

void Policy::finish(std::span<const Outcome> outcomes, std::int64_t elapsed_ns) {
  State& s = *state_;
  const bool informed = s.lengths.weight() > 0;
  const ReplayTrace trace = make_trace(s.work, outcomes);
  std::vector<std::int64_t> fixed;
  for (const LayoutShape* shape : s.uniform)
    fixed.push_back(start_replay(trace, *shape, s.cost).finish());
  const LayoutShape& first = s.shape(parse_layout(s.first_layout, s.chain));
  GenerationRun run = start_replay(trace, first, s.cost);
  for (const ReplaySwitch& w : s.made) {
    run.advance(w.at_ns);
    if (run.alive() > 0) run.switch_to(s.shape(w.layout), w.repack);
  }
  s.budget.finish(elapsed_ns, run.finish(), start_replay(trace, first, s.cost).finish(), fixed,
                  informed);
  std::vector<int> lengths, aborted;
  for (const Outcome& o : outcomes) (o.aborted ? aborted : lengths).push_back(o.response);
  s.lengths.learn(lengths, aborted);
}

std::int64_t Policy::step_ns(const LayoutGroup& group, int new_tokens, int sequences,
                             std::int64_t context) const {
  return state_->steps.curve(group).step_ns(new_tokens, sequences, context);
}

std::vector<std::int64_t> Policy::save() const {
  const State& s = *state_;
  std::vector<std::int64_t> words{kStateVersion};
  const auto put = [&](const std::vector<std::int64_t>& part) {
    words.push_back(static_cast<std::int64_t>(part.size()));
    words.insert(words.end(), part.begin(), part.end());
  };
  put(s.steps.save());
  put(s.lengths.save());
  put(s.budget.save());
  put(s.last);
  put({s.switches, s.acted_in_epoch, s.refusals, s.wait_until});
  std::vector<std::int64_t> made;
  for (const ReplaySwitch& w : s.made) {
    made.insert(made.end(), {w.at_ns, w.repack ? 1 : 0, w.layout.replicas()});
    for (const LayoutGroup& group : w.layout.groups()) made.push_back(group.tp);
  }
  put(made);
  return words;
}

void Policy::load(std::span<const std::int64_t> words) {
  State& s = *state_;
  std::vector<std::span<const std::int64_t>> parts;
  std::size_t at = 1;
  while (at < words.size() && words[at] >= 0 &&
         at + static_cast<std::size_t>(words[at]) < words.size()) {
    parts.push_back(words.subspan(at + 1, static_cast<std::size_t>(words[at])));
    at += 1 + static_cast<std::size_t>(words[at]);
  }
  TAPER_VALIDATE(!words.empty() && words[0] == kStateVersion && parts.size() == 6 &&
                     at == words.size() && parts[4].size() == 4,
                 "the saved state of the layout policy is damaged or of another version");
  s.steps.load(parts[0]);
  s.lengths.load(parts[1]);
  s.budget.load(parts[2]);
  s.last.assign(parts[3].begin(), parts[3].end());
  s.switches = static_cast<int>(parts[4][0]);
  s.acted_in_epoch = parts[4][1];
  s.refusals = parts[4][2];
  s.wait_until = parts[4][3];
  s.made.clear();
  for (std::size_t i = 0; i + 3 <= parts[5].size();) {
    TAPER_VALIDATE(
        parts[5][i + 2] > 0 && i + 3 + static_cast<std::size_t>(parts[5][i + 2]) <= parts[5].size(),
        "the saved state of the layout policy is damaged");
    const auto groups = parts[5].subspan(i + 3).first(static_cast<std::size_t>(parts[5][i + 2]));
    s.made.push_back(
        {parts[5][i], Layout({groups.begin(), groups.end()}, s.chain), parts[5][i + 1] != 0});
    i += 3 + groups.size();
  }
}

}  // namespace taper
