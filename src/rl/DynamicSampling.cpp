// SPDX-License-Identifier: Apache-2.0
#include "rl/DynamicSampling.hpp"

#include <algorithm>

namespace taper {
namespace {

struct GroupRange {
  std::size_t begin, end;
  bool teaches;
  bool taken = false;
};

// Whether the scores of a group differ, among the samples that have one. The scores without shaping
// are compared: otherwise a group of right responses would pass because of their lengths. A group
// of one with a score passes, since it is not compared.
bool can_teach(std::span<const SampleSummary> group) {
  const auto has_score = [](const SampleSummary& s) { return !s.unscored; };
  const auto first = std::find_if(group.begin(), group.end(), has_score);
  if (first == group.end()) return false;
  return group.size() == 1 || std::any_of(first, group.end(), [&](const SampleSummary& s) {
           return has_score(s) && s.unshaped_score != first->unshaped_score;
         });
}

std::vector<GroupRange> groups_of(const std::vector<SampleSummary>& samples) {
  std::vector<GroupRange> groups;
  for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    end = prompt_end(samples, begin);
    groups.push_back({begin, end, can_teach({samples.data() + begin, end - begin})});
  }
  return groups;
}

}  // namespace

int count_teaching_groups(const std::vector<SampleSummary>& samples) {
  const auto groups = groups_of(samples);
  return static_cast<int>(
      std::count_if(groups.begin(), groups.end(), [](const GroupRange& g) { return g.teaches; }));
}

GroupSelection select_groups(const std::vector<SampleSummary>& samples, int wanted) {
  GroupSelection selection;
  auto groups = groups_of(samples);
  int missing = wanted;
  for (const bool teaching : {true, false})
    for (GroupRange& g : groups) {
      if (g.teaches != teaching) continue;
      g.taken = missing > 0;
      missing -= g.taken ? 1 : 0;
      if (teaching)
        selection.counts.surplus += g.taken ? 0 : 1;
      else
        (g.taken ? selection.counts.filled : selection.counts.dropped) += 1;
    }
  for (const GroupRange& g : groups) selection.taken.resize(g.end, g.taken);
  return selection;
}

}  // namespace taper
