// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace taper {

// A log-prob in the fewest digits that give the same f32 back. Throws Error for what JSON cannot
// hold (nan, infinities).
std::string log_prob_text(float value);

}  // namespace taper
