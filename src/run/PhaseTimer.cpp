// SPDX-License-Identifier: Apache-2.0
#include "run/PhaseTimer.hpp"

#include <algorithm>
#include <cmath>

#include "comm/Collectives.hpp"

namespace taper {

void PhaseTimer::start(const char* phase) {
  stop();
  progress_->set_phase(phase);
  phase_ = phase;
  timer_.restart();
}

double& PhaseTimer::of(const char* phase) {
  const auto same = std::find_if(seconds_.begin(), seconds_.end(),
                                 [&](const auto& entry) { return entry.first == phase; });
  return same != seconds_.end() ? same->second : seconds_.emplace_back(phase, 0.0).second;
}

void PhaseTimer::stop() {
  if (phase_ == nullptr) return;
  of(phase_) += timer_.seconds();
  phase_ = nullptr;
}

void PhaseTimer::expect(const char* phase) {
  if (phase_ != nullptr) of(phase_);  // it began before
  of(phase);
}

double PhaseTimer::total() const {
  double sum = 0;
  for (const auto& [phase, seconds] : seconds_) sum += seconds;
  return sum;
}

std::vector<PhaseTiming> reduce_timing(const Group& group, const PhaseTimer& timer) {
  std::vector<double> mine;
  for (const auto& [phase, seconds] : timer.seconds()) mine.push_back(seconds);
  std::vector<double> all(mine.size() * group.size());
  all_gather(group, all, mine);
  std::vector<PhaseTiming> timing;
  for (std::size_t p = 0; p < mine.size(); ++p) {
    PhaseTiming t{timer.seconds()[p].first, INFINITY, 0.0, 0.0};
    for (int r = 0; r < group.size(); ++r) {
      const double s = all[r * mine.size() + p];
      t.min = std::min(t.min, s);
      t.max = std::max(t.max, s);
      t.mean += s / group.size();
    }
    timing.push_back(t);
  }
  return timing;
}

}  // namespace taper
