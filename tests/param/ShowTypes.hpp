// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Teuchos_ParameterList.hpp>
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/Text.hpp"
#include "param/detail/ListTools.hpp"
#include "param/detail/YamlScalar.hpp"

namespace taper::test {

// Names, C++ types and values of a list, in its order.
inline std::string show_types(const Teuchos::ParameterList& list) {
  std::ostringstream out;
  list.print(out, Teuchos::ParameterList::PrintOptions().showTypes(true).showFlags(false));
  return out.str();
}

inline void collect_lines(const Teuchos::ParameterList& list, const std::string& prefix,
                          std::vector<std::string>& lines) {
  for (auto it = list.begin(); it != list.end(); ++it) {
    const std::string path = prefix + list.name(it);
    const auto& entry = list.entry(it);
    if (entry.isList())
      collect_lines(Teuchos::getValue<Teuchos::ParameterList>(entry), path + "/", lines);
    else
      lines.push_back(path + " = " + param::detail::format_value(param::detail::get(entry)));
  }
}

// One line "Section/Name = value" per parameter, sorted; equal for lists that differ in order only.
inline std::string to_stable_text(const Teuchos::ParameterList& list) {
  std::vector<std::string> lines;
  collect_lines(list, "", lines);
  std::sort(lines.begin(), lines.end());
  return lines.empty() ? std::string() : join(lines, "\n") + "\n";
}

}  // namespace taper::test
