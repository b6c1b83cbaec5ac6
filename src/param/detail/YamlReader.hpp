// SPDX-License-Identifier: Apache-2.0
//
// Run files: one YAML document of nested sections, scalars and lists of scalars, read by yaml-cpp.
// Teuchos' own reader is not used: it drops keys at a wrong indentation without a word, refuses
// non-ASCII text, several top-level sections and empty lists, and keeps no line numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "param/detail/Value.hpp"

namespace Teuchos {
class ParameterList;
}

namespace taper::param::detail {

using LineMap = std::map<std::string, int>;  // "Section/Name" -> line, from 1

// Adds the content of text to list. file is for messages. Throws Error(kBadInput).
void read_yaml(std::string_view text, const std::string& file, Teuchos::ParameterList& list,
               LineMap& lines);

// Reads a scalar or a list. Throws std::invalid_argument with the reason.
Value read_yaml_value(std::string_view text);

}  // namespace taper::param::detail
