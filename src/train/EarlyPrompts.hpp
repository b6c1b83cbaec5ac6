// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "rl/SampleSet.hpp"

namespace taper {

// Samples of one iteration and their figures as they come, in any order, until a prompt is
// complete: it has all of its samples, and these have all figures. Not collective.
class EarlyPrompts {
 public:
  // So many samples of a prompt; each needs all of these figures.
  EarlyPrompts(int samples, std::vector<SampleFigure> figures);

  void clear();
  void add(Sample sample);
  // A figure, by its number, of a sample that has come or will come.
  void add(const ResponseId& id, int figure, std::vector<float> values);

  bool has_complete() const { return !complete_.empty(); }
  // The samples of the prompt that was complete first.
  std::vector<Sample> take();

 private:
  struct Part {
    std::optional<Sample> sample;
    std::map<int, std::vector<float>> figures;
  };
  void move_if_complete(std::int64_t prompt);

  int samples_;
  std::vector<SampleFigure> figures_;
  std::map<std::int64_t, std::map<ResponseId, Part>> incomplete_;  // by prompts
  std::deque<std::vector<Sample>> complete_;
};

}  // namespace taper
