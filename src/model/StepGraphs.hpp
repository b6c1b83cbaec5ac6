// SPDX-License-Identifier: Apache-2.0
//
// Decoding launches the same kernels step after step, hundreds of them for a few tokens. On devices
// they are recorded, and a step is one launch (kernels/LaunchGraph.hpp).
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>

#include "kernels/Exec.hpp"

namespace taper {

class LaunchGraph;

// The recorded launches of an engine. They must be gone before the groups that they exchange over.
class StepGraphs {
 public:
  // All that the launches of a step depend on, besides the contents of memory that does not move.
  struct Shape {
    const void *view = nullptr, *parallel = nullptr, *pages = nullptr, *segments = nullptr,
               *positions = nullptr;
    int rows = 0;

    auto operator<=>(const Shape&) const = default;
  };

  // Steps of a shape that cost more than those after them.
  static constexpr int kStepsToRecord = kOnHost ? 0 : 2;

  StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;
  ~StepGraphs();

  // How many rows a step of `rows` sequences gets, with at most `most` in all, so that there are
  // few shapes; 0 if it is not to be recorded.
  static int padded_rows(int rows, int most) {
    if constexpr (kOnHost)
      return 0;
    else
      return rows_on_device(rows, most);
  }

  // Has `launches` done: by calling it for the first step of a shape, recording it for the second,
  // and from then on by one launch.
  template <class Launches>
  void run(const Exec& exec, const Shape& shape, const Launches& launches) {
    if constexpr (kOnHost)
      launches();
    else
      run_recorded(exec, shape, launches);
  }

  // The largest number of launches that a graph stands for; 0 if there is none.
  int largest() const;

 private:
  static int rows_on_device(int rows, int most);
  void run_recorded(const Exec& exec, const Shape& shape, const std::function<void()>& launches);

  std::map<Shape, std::unique_ptr<LaunchGraph>> graphs_;  // null: the shape has come once
};

}  // namespace taper
