// SPDX-License-Identifier: Apache-2.0
#include "planner/Race.hpp"

#include <algorithm>
#include <iterator>

namespace taper {

void Race::ended(const ResponseId& id, int length) {
  Ended& group = groups_[id.prompt];
  if (is_complete(group)) best_.erase({group.rbegin()->first, id.prompt});
  group.emplace(length, id.sample);
  if (std::ssize(group) > goal_.samples) group.erase(std::prev(group.end()));
  if (!is_complete(group)) return;
  best_.emplace(group.rbegin()->first, id.prompt);
  if (std::ssize(best_) > goal_.groups) best_.erase(std::prev(best_.end()));
}

int Race::cutoff() const {
  return std::ssize(best_) == goal_.groups ? best_.rbegin()->first : kNoBound;
}

int Race::bound(std::int64_t prompt) const {
  const auto group = groups_.find(prompt);
  const int own = group != groups_.end() && is_complete(group->second)
                      ? group->second.rbegin()->first
                      : kNoBound;
  return std::min(own, cutoff());
}

std::vector<ResponseId> Race::kept() const {
  std::vector<ResponseId> ids;
  if (cutoff() == kNoBound) return ids;
  for (const auto& [longest, prompt] : best_)
    for (const auto& [length, sample] : groups_.at(prompt)) ids.push_back({prompt, sample});
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace taper
