// SPDX-License-Identifier: Apache-2.0
//
// How the requests of a generation are shared out over the replicas at its start.
#pragma once

#include <vector>

#include "engine/Request.hpp"
#include "planner/Dealer.hpp"

namespace taper {

// Requests that keep every replica busy: with fewer requests than replicas, several in place of
// each, which share out its samples, however long its prompt is (a Dealer lets few replicas read a
// long one). The responses do not depend on it. For requests whose samples have no lengths of their
// own.
std::vector<Request> in_parts(std::vector<Request> requests, int replicas);

// What a replica begins with, as a Dealer deals it: of each request none, some or all of the
// samples.
std::vector<Request> first_requests(const std::vector<Request>& requests, const Layout& layout,
                                    int replica);

}  // namespace taper
