// SPDX-License-Identifier: Apache-2.0
#include "rollout/Requests.hpp"

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

std::vector<Request> first_requests(const std::vector<Request>& requests, const Layout& layout,
                                    int replica) {
  std::vector<Request> mine;
  Dealer dealer(layout);
  for (const Request& request : requests) {
    int before = 0, here = 0;
    for (const Deal& deal :
         dealer.deal(request.samples, std::ssize(request.prompt), request.max_new_tokens)) {
      if (deal.replica < replica) before += deal.samples;
      if (deal.replica == replica) here = deal.samples;
    }
    if (here == 0 && request.samples > 0) continue;  // the engine refuses the others
    mine.push_back(request.part(before, here));
  }
  return mine;
}

}  // namespace taper
