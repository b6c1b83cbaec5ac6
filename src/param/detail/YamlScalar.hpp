// SPDX-License-Identifier: Apache-2.0
//
// Single values written as YAML.
#pragma once

#include <string>

#include "param/detail/Value.hpp"

namespace taper::param::detail {

// A scalar as YAML on one line; texts are quoted only if a reader would take them for something
// else.
std::string format_scalar(const Value& value);

// As format_scalar, and lists as [a, b].
std::string format_value(const Value& value);

// A key as YAML.
std::string format_key(const std::string& name);

}  // namespace taper::param::detail
