// SPDX-License-Identifier: Apache-2.0
#include "rollout/FirstRequests.hpp"

namespace taper {

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
