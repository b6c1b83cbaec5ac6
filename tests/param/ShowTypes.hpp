// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Teuchos_ParameterList.hpp>
#include <sstream>
#include <string>

namespace taper::test {

// Names, C++ types and values of a list, in its order.
inline std::string show_types(const Teuchos::ParameterList& list) {
  std::ostringstream out;
  list.print(out, Teuchos::ParameterList::PrintOptions().showTypes(true).showFlags(false));
  return out.str();
}

}  // namespace taper::test
