// SPDX-License-Identifier: Apache-2.0
#include "rollout/RequestParts.hpp"

#include <algorithm>

namespace taper {

std::vector<Request> in_parts(std::vector<Request> requests, int replicas) {
  const int count = static_cast<int>(requests.size());
  if (count == 0 || replicas < 2 * count) return requests;
  std::vector<Request> all;
  for (const Request& whole : requests) {
    const int parts = std::clamp(replicas / count, 1, whole.samples);
    const int share = (whole.samples + parts - 1) / parts;
    for (int first = 0; first < whole.samples; first += share) {
      Request& part = all.emplace_back(whole);
      part.first.sample += first;
      part.samples = std::min(share, whole.samples - first);
    }
  }
  return all;
}

}  // namespace taper
