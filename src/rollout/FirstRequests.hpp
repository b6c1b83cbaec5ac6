// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/Request.hpp"
#include "planner/Dealer.hpp"

namespace taper {

// What a replica begins with, as a Dealer deals it: of each request none, some
// or all of the samples.
std::vector<Request> first_requests(const std::vector<Request>& requests, const Layout& layout,
                                    int replica);

}  // namespace taper
