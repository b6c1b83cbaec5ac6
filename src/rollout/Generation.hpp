// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/Request.hpp"
#include "rl/Sample.hpp"

namespace taper {

// What was generated, as a sample without reward.
Sample as_sample(Completion&& completion);

}  // namespace taper
