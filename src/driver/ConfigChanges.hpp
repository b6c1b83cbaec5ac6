// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace taper {

// What differs between the parameters of two runs, both as Schema::current_yaml() writes them:
// "Training/Iterations: 3 -> 6", in the order of `now`; "(none)" stands for a parameter that one of
// the two versions of the program does not have.
std::vector<std::string> config_changes(const std::string& before, const std::string& now);

}  // namespace taper
