// SPDX-License-Identifier: Apache-2.0
#include "simulate/Oracle.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/Error.hpp"

namespace taper {
namespace {

class Search {
 public:
  Search(const std::vector<LayoutShape>& shapes, std::int64_t step, OracleResult& best)
      : shapes_(shapes), step_(step), best_(best) {}

  // All ways on from a run at time `at`, with so many switches left.
  void from(PlayedGeneration run, std::int64_t at, int switches) {
    consider(run);
    if (switches == 0) return;
    for (;;) {
      at += step_;
      run.advance(at);
      if (run.alive() == 0 || at >= best_.time_ns) return;
      for (const LayoutShape& to : shapes_) {
        const bool stays = to.layout == run.layout();
        if (stays && to.layout.replicas() == 1) continue;
        const Repack repack = stays ? Repack::kYes : Repack::kNo;
        const PlayedGeneration::Change change = run.plan_change(to, repack);
        if (stays && !moves_any(change)) continue;
        PlayedGeneration next = run;
        next.apply(to, change);
        made_.push_back({at, to.layout, repack});
        from(std::move(next), at, switches - 1);
        made_.pop_back();
      }
    }
  }

 private:
  static bool moves_any(const PlayedGeneration::Change& change) {
    return std::any_of(change.moves.begin(), change.moves.end(),
                       [](const SequenceMove& m) { return m.from != m.to; });
  }

  void consider(PlayedGeneration run) {
    const std::int64_t time = run.finish();
    if (time >= best_.time_ns) return;
    best_.time_ns = time;
    best_.switches = made_;
  }

  const std::vector<LayoutShape>& shapes_;
  std::int64_t step_;
  OracleResult& best_;
  std::vector<ReplaySwitch> made_;
};

}  // namespace

OracleResult best_plan(const ReplayTrace& trace, const std::vector<int>& degrees,
                       const DivisorChain& chain, const SimulatedMachine& machine,
                       std::int64_t consult_ns, int grid) {
  TAPER_EXPECT(!degrees.empty() && consult_ns > 0 && grid > 0);
  std::vector<LayoutShape> shapes;
  for (const int tp : degrees) shapes.push_back(resolve(Layout::uniform(tp, chain), machine.steps));
  OracleResult best{INT64_MAX, shapes.front().layout, {}};
  for (const LayoutShape& shape : shapes) {
    const std::int64_t time = start_replay(trace, shape, machine.cost).finish();
    if (time < best.time_ns) best = {time, shape.layout, {}};
  }
  const std::int64_t points = best.time_ns / consult_ns + 1;
  const std::int64_t step = consult_ns * ((points + grid - 1) / grid);
  for (const LayoutShape& shape : shapes) {
    OracleResult found{best.time_ns, shape.layout, {}};
    Search(shapes, step, found).from(start_replay(trace, shape, machine.cost), 0, 2);
    if (found.time_ns < best.time_ns) best = std::move(found);
  }
  return best;
}

int quick_grid(int sequences, int degrees) {
  constexpr double kPlayed = 1 << 23;  // sequences of all plans: d^3 grid^2 / 2 for d degrees
  const double d = degrees, grid = std::sqrt(2 * kPlayed / (d * d * d * std::max(1, sequences)));
  return static_cast<int>(std::clamp(grid, 1.0, 32.0));
}

}  // namespace taper
