// SPDX-License-Identifier: Apache-2.0
#include "model/StepGraphs.hpp"

#include <algorithm>
#include <array>

#include "kernels/LaunchGraph.hpp"

namespace taper {

#if defined(TAPER_CUDA)

StepGraphs::StepGraphs() = default;
StepGraphs::~StepGraphs() = default;

// Rows that only fill up cost a little; a graph costs memory of the device and a recording. Beyond
// the last of them, kernels take longer than their launches.
int StepGraphs::rows_on_device(int rows, int most) {
  constexpr std::array kRows{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256};
  const auto at = std::lower_bound(kRows.begin(), kRows.end(), rows);
  return at == kRows.end() ? 0 : std::min(*at, most);
}

void StepGraphs::run_recorded(const Exec& exec, const Shape& shape,
                              const std::function<void()>& launches) {
  const auto [at, is_new] = graphs_.try_emplace(shape);
  if (is_new) return launches();
  if (!at->second) at->second = std::make_unique<LaunchGraph>(exec, launches);
  at->second->launch(exec);
}

int StepGraphs::largest() const {
  int most = 0;
  for (const auto& [shape, graph] : graphs_)
    if (graph) most = std::max(most, graph->size());
  return most;
}

#else

class LaunchGraph {};

StepGraphs::StepGraphs() = default;
StepGraphs::~StepGraphs() = default;

int StepGraphs::largest() const {
  return 0;
}

#endif

}  // namespace taper
