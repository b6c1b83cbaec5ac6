// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "param/Schema.hpp"

namespace taper::param {

// The value of "Section/Name" that the described member has now, for scripts: texts without quotes,
// all else as YAML writes it. Throws Error(kBadInput) naming the nearest where there is no such
// parameter.
std::string current_value(const Schema& schema, const std::string& path);

}  // namespace taper::param
