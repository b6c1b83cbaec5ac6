// SPDX-License-Identifier: Apache-2.0
#include "driver/ConfigChanges.hpp"

#include <algorithm>
#include <utility>

#include "base/Error.hpp"
#include "param/ParamFile.hpp"

namespace taper {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;  // Section/Name, value

// None where the text cannot be read: a checkpoint is not refused for that.
Parameters parameters_of(const std::string& yaml) {
  try {
    return param::ParamFile::parse(yaml, "run.yaml").values();
  } catch (const Error&) {
    return {};
  }
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
