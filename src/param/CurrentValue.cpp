// SPDX-License-Identifier: Apache-2.0
#include "param/CurrentValue.hpp"

#include <Teuchos_ParameterList.hpp>
#include <vector>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "param/detail/ListTools.hpp"

namespace taper::param {
namespace {

// The text of a parameter that the list has.
std::string text_of(const Teuchos::ParameterList& list, const std::string& path,
                    const std::string& as_yaml) {
  const auto slash = path.find('/');
  if (slash != std::string::npos)
    return text_of(list.sublist(path.substr(0, slash)), path.substr(slash + 1), as_yaml);
  const detail::Value value = detail::get(list.getEntry(path));
  return value.kind == detail::Value::Kind::kText ? value.text : as_yaml;
}

}  // namespace

std::string current_value(const Schema& schema, const std::string& path) {
  const ParamFile file = ParamFile::parse(schema.current_yaml(), "current.yaml");
  std::vector<std::string> known;
  for (const auto& [name, value] : file.values()) {
    if (name == path) return text_of(file.list(), path, value);
    known.push_back(name);
  }
  const std::string close = nearest(path, known);
  TAPER_FAIL(ExitCode::kBadInput, "there is no parameter "
                                      << path
                                      << (close.empty() ? "" : "; did you mean '" + close + "'?"));
}

}  // namespace taper::param
