// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "planner/Scenarios.hpp"
#include "support/synthetic_profile.hpp"

namespace taper::test {

// The tail of a generation on four ranks: few sequences, most of them at the first rank.
struct Tail {
  LatencyProfile profile = synthetic_profile(small_model_tcp(), {1, 2, 4});
  StepModel steps{profile};
  SwitchCost cost{profile};
  DivisorChain chain = DivisorChain::of(4);
  std::deque<LayoutShape> shapes;
  std::vector<const LayoutShape*> uniform;
  std::vector<int> degrees{1, 2, 4};
  LengthModel lengths{3};
  Scenarios scenarios{7};

  Tail() {
    for (const int tp : degrees) uniform.push_back(&shape(Layout::uniform(tp, chain)));
    lengths.begin(1024);
    std::vector<int> past;
    for (int i = 0; i < 200; ++i) past.push_back(20 + i * i % 1000);
    lengths.learn(past, {});
    scenarios.begin(1, 0);
  }

  const LayoutShape& shape(const Layout& layout) {
    for (const LayoutShape& s : shapes)
      if (s.layout == layout) return s;
    return shapes.emplace_back(resolve(layout, steps));
  }

  // In the layout of four replicas, replica by replica.
  static std::vector<SequenceState> sequences(int count) {
    std::vector<SequenceState> list;
    for (int i = 0; i < count; ++i)
      list.push_back({i, i % 3 == 0 ? i % 4 : 0, 400 + i, 100, 300 + i, 1024});
    std::stable_sort(list.begin(), list.end(), [](const SequenceState& a, const SequenceState& b) {
      return a.replica < b.replica;
    });
    return list;
  }
};

}  // namespace taper::test
