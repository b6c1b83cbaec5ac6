// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace taper {

// Named facts of a model, a machine or a job, e.g. {"layers", "30"}, as files hold them.
using Facts = std::map<std::string, std::string>;

}  // namespace taper
