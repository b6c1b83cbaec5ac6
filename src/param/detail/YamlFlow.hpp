// SPDX-License-Identifier: Apache-2.0
//
// YAML's flow spelling: [1, 2, 3] and {a: 1, b: {c: 2}}.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "param/detail/Value.hpp"

namespace Teuchos {
class ParameterList;
}

namespace taper::param::detail {

// The number of brackets left open at the end of a line without comment, quotes respected.
int count_open_brackets(std::string_view line);

// Reads a list of scalars. Throws std::invalid_argument with the reason.
Value read_flow_list(std::string_view text);

// Reads {name: value, ...} into list; names are told to found, with the path below the map. Throws
// std::invalid_argument with the reason.
void read_flow_map(std::string_view text, Teuchos::ParameterList& list,
                   const std::function<void(const std::string& path)>& found);

}  // namespace taper::param::detail
