// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/Request.hpp"
#include "engine/StopMatcher.hpp"
#include "instance/Model.hpp"
#include "rl/Sample.hpp"

namespace taper {

// The model's end-of-sequence ids and these stop strings, with the bytes of all tokens where there
// are strings. Throws Error where strings need a tokenizer that the model lacks.
StopOptions stop_options(const ModelFiles& files, const std::vector<std::string>& strings);

// What was generated, as a sample without reward.
Sample as_sample(Completion&& completion);

}  // namespace taper
