// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace Teuchos {
class ParameterList;
}

namespace taper::param::detail {

// Adds the <Parameter> and <ParameterList> elements of Teuchos' XML form to list. Values are
// checked against their type attribute here: Teuchos' converter turns type="int" value="x" into 0.
// Throws Error(kBadInput).
void read_xml(const std::string& text, const std::string& file, Teuchos::ParameterList& list);

}  // namespace taper::param::detail
