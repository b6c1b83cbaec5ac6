// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace taper {

// Text that a terminal shows and does not obey: control characters other than newline and tab, the
// characters that turn the direction of text, and bytes that are no UTF-8 become escapes such as
// \x1b and \u202e. All else stays as it is.
std::string printable(std::string_view text);

// Of a JSON text: the same characters as escapes of JSON, which leaves its values as they are. Text
// in UTF-8.
std::string printable_json(std::string_view json);

}  // namespace taper
