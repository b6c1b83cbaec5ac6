// SPDX-License-Identifier: Apache-2.0
#include "simulate/Simulator.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace taper {
namespace {

// The sequences of the groups that change.
std::vector<SequenceState> affected(const PlayedGeneration& run, const Plan& plan,
                                    const Workload& work) {
  std::vector<SequenceState> list = run.states();
  const auto& after = plan.layout.groups();
  std::erase_if(list, [&](const SequenceState& s) {
    const LayoutGroup& group = run.layout().groups()[s.replica];
    return plan.repack == Repack::kNo &&
           std::find(after.begin(), after.end(), group) != after.end();
  });
  for (SequenceState& s : list) {
    s.limit = work.max_new_tokens;
    s.owner = s.id / std::max(1, work.samples);
  }
  return list;
}

}  // namespace

std::int64_t replay_ns(const ReplayTrace& trace, const Layout& first,
                       const std::vector<ReplaySwitch>& switches, const SimulatedMachine& machine) {
  std::deque<LayoutShape> shapes{resolve(first, machine.steps)};
  PlayedGeneration run = start_replay(trace, shapes.front(), machine.cost);
  for (const ReplaySwitch& s : switches) {
    run.advance(s.at_ns);
    if (run.alive() == 0) break;
    run.switch_to(shapes.emplace_back(resolve(s.layout, machine.steps)), s.repack);
  }
  return run.finish();
}

std::vector<std::int64_t> savings(const ReplayTrace& trace, const Layout& first,
                                  const std::vector<ReplaySwitch>& switches, std::int64_t time_ns,
                                  const SimulatedMachine& machine) {
  std::vector<std::int64_t> saved;
  std::vector<ReplaySwitch> before;
  for (const ReplaySwitch& s : switches) {
    saved.push_back(replay_ns(trace, first, before, machine) - time_ns);
    before.push_back(s);
  }
  return saved;
}

SimulatedGeneration simulate(Planner& planner, const PlannerOptions& options,
                             const ReplayTrace& trace, const SimulatedMachine& machine) {
  SimulatedGeneration result{planner.begin(trace.work), 0, 0, 0, {}, {}};
  std::deque<LayoutShape> shapes{resolve(result.first, machine.steps)};
  PlayedGeneration run = start_replay(trace, shapes.front(), machine.cost);
  for (std::int64_t next = 0, wait = 0; run.alive() > 0;) {
    next += std::max({options.consult_ns, options.consult_steps * run.slowest_step_ns(), wait});
    run.advance(next);
    if (run.alive() == 0) break;
    const Snapshot snapshot = run.snapshot(result.consultations++, std::max(1, trace.work.samples));
    const Decision decision = planner.decide(snapshot);
    wait = decision.wait_ns;
    if (const auto rest = decision.rest_of_staying())
      result.forecasts.push_back({snapshot.elapsed_ns, result.switches.size(), *rest});
    if (!decision.act) continue;
    const Confirmation confirmed =
        planner.confirm(decision.plan, snapshot, affected(run, decision.plan, trace.work));
    if (!confirmed.act) continue;
    SimulatedSwitch record{{next, decision.plan.layout, decision.plan.repack},
                           snapshot.consultation,
                           run.alive(),
                           confirmed.saving,
                           confirmed.cost.total(),
                           confirmed.cost.kv_bytes,
                           0};
    run.switch_to(shapes.emplace_back(resolve(decision.plan.layout, machine.steps)),
                  decision.plan.repack);
    planner.switched(decision.plan, record.cost_ns);
    result.switching_ns += record.cost_ns;
    result.switches.push_back(std::move(record));
    next = std::max(next, run.clock());
  }
  result.time_ns = run.finish();
  std::vector<ReplaySwitch> made;
  for (const SimulatedSwitch& record : result.switches) made.push_back(record.made);
  const auto saved = savings(trace, result.first, made, result.time_ns, machine);
  for (std::size_t i = 0; i < saved.size(); ++i) result.switches[i].saved_ns = saved[i];
  planner.finish(trace.outcomes, result.time_ns);
  return result;
}

}  // namespace taper
