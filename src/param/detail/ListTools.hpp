// SPDX-License-Identifier: Apache-2.0
//
// Values in and out of Teuchos::ParameterList.
#pragma once

#include <string>

#include "param/detail/Value.hpp"

namespace Teuchos {
class ParameterEntry;
class ParameterList;
}  // namespace Teuchos

namespace taper::param::detail {

// Types follow Teuchos' own readers: int if it fits, else long long; Array(double) when any item
// is no integer; Array(string) when any item is no number.
void put(Teuchos::ParameterList& list, const std::string& name, const Value& value);

// kSection for a sublist with content, kNothing for one without (a key with nothing after it).
Value get(const Teuchos::ParameterEntry& entry);

}  // namespace taper::param::detail
