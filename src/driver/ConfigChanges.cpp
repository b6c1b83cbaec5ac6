// SPDX-License-Identifier: Apache-2.0
#include "driver/ConfigChanges.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/Text.hpp"

namespace taper {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;  // Section/Name, value

// Of lines "Section:" and, deeper, "Name: value"; comments are skipped.
Parameters parameters_of(const std::string& yaml) {
  Parameters found;
  std::vector<std::pair<std::size_t, std::string>> sections;  // indentation, name
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = line.find_first_not_of(' ');
    const std::size_t colon = line.find(':');
    if (indent == std::string::npos || line[indent] == '#' || colon == std::string::npos) continue;
    while (!sections.empty() && sections.back().first >= indent) sections.pop_back();
    const std::string name = line.substr(indent, colon - indent),
                      value = trim(line.substr(colon + 1));
    if (value.empty()) {
      sections.emplace_back(indent, name);
      continue;
    }
    std::string path;
    for (const auto& [depth, section] : sections) path += section + "/";
    found.emplace_back(path + name, value);
  }
  return found;
}

// Its value, or "(none)".
std::string value_of(const Parameters& parameters, const std::string& path) {
  const auto at = std::find_if(parameters.begin(), parameters.end(),
                               [&](const auto& entry) { return entry.first == path; });
  return at == parameters.end() ? "(none)" : at->second;
}

}  // namespace

std::vector<std::string> config_changes(const std::string& before, const std::string& now) {
  const Parameters old_ones = parameters_of(before), new_ones = parameters_of(now);
  std::vector<std::string> changes;
  for (const auto& [path, value] : new_ones)
    if (const std::string was = value_of(old_ones, path); was != value)
      changes.push_back(path + ": " + was + " -> " + value);
  for (const auto& [path, value] : old_ones)
    if (const std::string is = value_of(new_ones, path); is == "(none)")
      changes.push_back(path + ": " + value + " -> " + is);
  return changes;
}

}  // namespace taper
