// SPDX-License-Identifier: Apache-2.0
#include "planner/Planner.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "planner/detail/PlannerState.hpp"

namespace taper {
namespace {

std::uint64_t hash_of(const Snapshot& s, const Plan& plan, bool act) {
  return fnv1a(std::to_string(s.epoch) + " " + std::to_string(s.consultation) + " " +
               to_string(plan) + (act ? " act" : ""));
}

}  // namespace

std::vector<std::string> PlannerOptions::problems() const {
  std::vector<std::string> list;
  if (scenarios < kLeastScenarios || scenarios > kMostScenarios)
    list.push_back("scenarios must be in [" + std::to_string(kLeastScenarios) + ", " +
                   std::to_string(kMostScenarios) + "]");
  if (least_gain < 1) list.push_back("least_gain must be at least 1");
  if (max_switches < 0) list.push_back("max_switches must not be negative");
  if (budget_ppm < 0 || fallback_ppm < 0) list.push_back("budgets must not be negative");
  if (half_life < 1) list.push_back("half_life must be at least 1 iteration");
  if (consult_ns < 1 || consult_steps < 1)
    list.push_back("the period of consultation must be positive");
  for (const int tp : degrees)
    if (tp < 1) list.push_back("tensor-parallel degrees must be positive");
  return list;
}

Planner::Planner(const LatencyProfile& profile, const DivisorChain& chain,
                 const PlannerOptions& options) {
  require_no_problems(options.problems(), "planner");
  require_degrees(profile, options.degrees);
  std::vector<int> degrees;
  // A profile may have been measured for other ranks: what is not in the chain has no groups here.
  for (const int tp : options.degrees.empty() ? profile.degrees() : options.degrees)
    if (chain.has(tp)) degrees.push_back(tp);
  std::sort(degrees.begin(), degrees.end());
  TAPER_VALIDATE(!degrees.empty(),
                 "none of the tensor-parallel degrees "
                     << join(options.degrees.empty() ? profile.degrees() : options.degrees)
                     << " can be had on " << count_text(chain.ranks(), "rank")
                     << " (whose groups have the degrees " << join(chain.degrees())
                     << "); measure a profile with one of these, or allow one of them");
  state_ = std::make_unique<State>(profile, chain, options, std::move(degrees));
}
Planner::~Planner() = default;
Planner::Planner(Planner&&) noexcept = default;

Layout Planner::begin(const Workload& workload) {
  State& s = *state_;
  s.work = workload;
  s.made.clear();
  s.last = {};
  s.settled = {};
  s.search.reset();
  s.switching = {};
  s.steps.begin();
  s.lengths.begin(std::max(1, workload.max_new_tokens));
  s.scenarios.begin(workload.iteration, s.likeness.share(), workload.surplus,
                    s.whole.chain().ranks());
  const auto& uniform = s.whole.uniform();
  const LayoutShape* best = uniform.front();
  if (!s.options.initial.empty()) {
    best = &s.whole.shape(parse_layout(s.options.initial, s.whole.chain()));
  } else if (s.budget.prefers_static()) {
    best = uniform[s.budget.best_static()];
  } else if (s.lengths.weight() == 0) {
    // Nothing is known of lengths: the fastest steps for all sequences. Switching to higher degrees
    // later remains possible.
    for (const SwitchRule& rule :
         ladder(s.setting(s.whole), *best, workload.sequences, s.mean_prompt()))
      if (rule.alive >= workload.sequences) best = rule.shape;
  } else {
    best = &s.first_shape();
  }
  s.first_layout = to_string(best->layout);
  return best->layout;
}

Decision Planner::decide(const Snapshot& snapshot) {
  State& s = *state_;
  const Plan stay_plan = stay_in(snapshot.layout);
  Decision decision{false, stay_plan, {}, 0, "", 0};
  const auto answer = [&](const std::string& reason) {
    decision.reason = reason;
    decision.hash = hash_of(snapshot, decision.plan, decision.act);
    return decision;
  };
  if (s.options.mode == PlannerMode::kStatic) return answer("static");
  // Before any answer: step times and lengths are learned from every snapshot.
  s.observe(snapshot);
  s.notice_refusal(snapshot);
  const int alive = snapshot.alive();
  if (alive == 0) return answer("nothing left");
  if (s.switching.done >= s.options.max_switches)
    return answer("no switch left in this generation");
  if (s.budget.exhausted()) return answer("recent switches have lost too much");
  decision.wait_ns = s.wait_ns(snapshot);
  if (s.is_settled(snapshot)) return answer("as planned");
  const auto found = s.search_on(snapshot);
  if (!found) {
    decision.wait_ns = 0;  // a search that goes on takes as few periods as it can
    return answer("plans are still being priced");
  }
  const std::vector<PricedPlan>& plans = *found;
  if (plans.front().rest_ns.empty()) return answer("no layout would be faster now");
  // The mean chooses, in favor of staying if it is the same; the saving, future by future, has to
  // be worth the risk.
  const auto saving_of = [&](const PricedPlan& p) {
    return difference(plans.front().rest_ns, p.rest_ns);
  };
  const std::int64_t arrival_ns = s.arrival_ns(snapshot);
  std::size_t best = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const bool meets = i > 0 && plans[i].plan.start == PlanStart::kNow;
    decision.prices.push_back({plans[i].plan, range_of(plans[i].rest_ns),
                               range_of(saving_of(plans[i])),
                               plans[i].cost_ns + (meets ? arrival_ns : 0)});
    if (plans[i].mean() < plans[best].mean()) best = i;
  }
  decision.plan = plans[best].plan;
  // The result stands for half the time to the next switch (at most a quarter of the elapsed time),
  // until its switch point, or until a quarter of the sequences have ended: by then lengths have
  // been seen that may change it.
  const bool later = decision.plan.start == PlanStart::kBelow;
  s.settled = {
      snapshot.epoch,
      snapshot.elapsed_ns + std::min(plans[later ? best : 0].next_ns / 2, snapshot.elapsed_ns / 4),
      std::max(later ? static_cast<int>(decision.plan.argument) : 0, alive * 3 / 4)};
  decision.wait_ns = s.wait_ns(snapshot);
  if (best == 0) return answer("staying is fastest");
  if (later) return answer("a later switch is better");
  // From here on a switch now is best: whatever forbids it may be different at the next
  // consultation.
  s.settled = {};
  if (!is_worth_risk(saving_of(plans[best]), s.options.least_gain))
    return answer("the saving is uncertain");
  if (!s.budget.affords(decision.prices[best].cost_ns, snapshot.elapsed_ns + plans.front().mean()))
    return answer("the switching budget is spent");
  if (snapshot.consultation < s.switching.wait_until) return answer("refused at the last meetings");
  decision.pays = true;
  decision.act = s.options.mode == PlannerMode::kAdaptive;
  if (decision.act) s.switching.acted_in_epoch = snapshot.epoch;
  return answer("switching pays");
}

Confirmation Planner::confirm(const Plan& plan, const Snapshot& snapshot,
                              std::span<const SequenceState> exact) {
  State& s = *state_;
  Confirmation result;
  const LayoutShape &here = s.whole.shape(snapshot.layout), &to = s.whole.shape(plan.layout);
  // Groups that the plan leaves alone are as in the snapshot.
  std::vector<SequenceState> sequences(exact.begin(), exact.end());
  const std::vector<bool> changed = changed_groups(here.layout, to.layout);
  for (SequenceState& q : expand(snapshot, s.expansion()))
    if (plan.repack == Repack::kNo && !changed[q.replica]) {
      q.owner += s.work.sequences;  // whose of the exact ones is not known
      sequences.push_back(q);
    }
  result.moves = place_sequences(here.layout, to.layout, plan.repack, exact);
  result.cost = s.cost.price(here.layout, to, exact, result.moves);
  result.cost.rendezvous += s.arrival_ns(snapshot);
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
  const auto plans =
      PlanSearch(s.setting(s.whole), here, sequences,
                 s.scenarios_for(static_cast<int>(sequences.size())), StepPhase::kBegin)
          .compare(to, plan.repack);
  const auto saving = difference(plans[0].rest_ns, plans[1].rest_ns);
  result.saving = range_of(saving);
  if (!is_worth_risk(saving, s.options.least_gain)) return answer(false, "it no longer pays");
  return answer(true, "confirmed");
}

void Planner::switched(const Plan& plan, std::int64_t measured_ns) {
  State& s = *state_;
  ++s.switching.done;
  s.budget.spend(measured_ns);
  // The planner has no clock: the switch came right after the snapshot that it was decided on.
  s.made.push_back({s.last.elapsed_ns, plan.layout, plan.repack});
}

void Planner::finish(std::span<const Outcome> outcomes, std::int64_t elapsed_ns) {
  State& s = *state_;
  // Choices without any knowledge of lengths are not held against switching.
  const bool informed = s.lengths.weight() > 0;
  s.steps.begin();  // as it was expected, not as its last steps were
  const ReplayTrace trace = make_trace(s.work, outcomes);
  // What was gained or lost is told by the model alone, for what was done as for what was not: a
  // measured time beside modeled ones would add the error of the model.
  std::vector<std::int64_t> fixed;
  for (const LayoutShape* shape : s.whole.uniform())
    fixed.push_back(start_replay(trace, *shape, s.cost).finish());
  const LayoutShape& first = s.whole.shape(parse_layout(s.first_layout, s.whole.chain()));
  PlayedGeneration played = start_replay(trace, first, s.cost);
  for (const ReplaySwitch& w : s.made) {
    played.advance(w.at_ns);
    if (played.alive() > 0) played.switch_to(s.whole.shape(w.layout), w.repack);
  }
  const std::int64_t expected_ns = played.finish();
  s.budget.finish(elapsed_ns, expected_ns, start_replay(trace, first, s.cost).finish(), fixed,
                  informed);
  s.steps.learn(elapsed_ns, expected_ns);
  std::vector<int> lengths, aborted;
  for (const Outcome& o : outcomes) (o.aborted ? aborted : lengths).push_back(o.response);
  s.lengths.learn(lengths, aborted);
  // Likeness is that of all responses to a prompt; if some were aborted, it is not known which
  // prompts are complete.
  if (aborted.empty()) s.likeness.learn(lengths, s.work.samples);
}

std::int64_t Planner::step_ns(const LayoutGroup& group, const StepContent& work) const {
  const StepCurve& curve = state_->steps.curve(group);
  return curve.step_ns(work.new_tokens, work.sequences, work.context) +
         curve.verify_ns(work.sequences, work.drafted, work.context);
}

int Planner::scale() const {
  return state_->steps.scale();
}

std::string Planner::save() const {
  return state_->save();
}

void Planner::load(std::string_view bytes) {
  state_->load(bytes);
}

void Planner::require_loadable(std::string_view bytes) const {
  Planner(state_->profile, state_->whole.chain(), state_->options).load(bytes);
}

}  // namespace taper
