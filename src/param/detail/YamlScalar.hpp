// SPDX-License-Identifier: Apache-2.0
//
// Spelling of single YAML values.
#pragma once

#include <string>
#include <string_view>

#include "param/detail/Value.hpp"

namespace taper::param::detail {

// A scalar as YAML on one line; texts are quoted only where a reader would take them for something
// else.
std::string format_scalar(const Value& value);

// As format_scalar, and lists as [a, b].
std::string format_value(const Value& value);

// A key as YAML.
std::string format_key(const std::string& name);

// Reads the quoted text that starts at text[at] (a ' or "), moving at behind the closing quote.
// Throws std::invalid_argument with the reason.
std::string read_quoted(std::string_view text, std::size_t& at);

// Length of the part of a line before its comment (# at the start or after a blank, outside
// quotes), trailing blanks removed.
std::size_t length_without_comment(std::string_view line);

}  // namespace taper::param::detail
