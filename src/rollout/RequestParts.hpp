// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/Request.hpp"

namespace taper {

// Requests that keep every replica busy: with fewer requests than replicas, several in place of
// each, which share out its samples, however long its prompt is (a Dealer lets few replicas read a
// long one). The responses do not depend on it. For requests whose samples have no lengths of their
// own.
std::vector<Request> in_parts(std::vector<Request> requests, int replicas);

}  // namespace taper
