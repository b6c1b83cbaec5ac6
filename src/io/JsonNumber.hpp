// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace taper {

// The fewest digits that give the same f32 back. Throws Error for what JSON cannot hold (nan,
// infinities), naming the value as a log-prob: nothing else is written like this.
std::string shortest_number(float value);

}  // namespace taper
