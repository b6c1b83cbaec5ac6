// SPDX-License-Identifier: Apache-2.0
//
// Values in and out of Teuchos::ParameterList, and the stable text of a list.
#pragma once

#include <string>

#include "param/detail/Value.hpp"

namespace Teuchos {
class ParameterEntry;
class ParameterList;
}  // namespace Teuchos

namespace taper::param::detail {

// Types follow Teuchos' own readers: int where it fits, else long long; Array(double) when any item
// is no integer; Array(string) when any item is no number. doc becomes the entry's doc string.
void put(Teuchos::ParameterList& list, const std::string& name, const Value& value,
         const std::string& doc = "");

// kSection for a sublist with content, kNothing for one without (a key with nothing after it).
Value get(const Teuchos::ParameterEntry& entry);

// One line "Section/Name = value" per parameter, sorted; equal for lists that differ in order only.
std::string to_stable_text(const Teuchos::ParameterList& list);

}  // namespace taper::param::detail
