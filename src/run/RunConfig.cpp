// SPDX-License-Identifier: Apache-2.0
#include "run/RunConfig.hpp"

#include <algorithm>
#include <utility>

#include "base/Error.hpp"
#include "io/Hdf5File.hpp"
#include "param/ParamFile.hpp"
#include "param/Schema.hpp"

namespace taper {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;  // Section/Name, value

// None if the text cannot be read: a checkpoint is not refused for that.
Parameters parameters_of(const std::string& yaml) {
  try {
    return param::ParamFile::parse(yaml, "run.yaml").values();
  } catch (const Error&) {
    return {};
  }
}

constexpr const char* kNone = "(none)";

std::string value_of(const Parameters& parameters, const std::string& path) {
  const auto at = std::find_if(parameters.begin(), parameters.end(),
                               [&](const auto& entry) { return entry.first == path; });
  return at == parameters.end() ? kNone : at->second;
}

// Parameters that the schema does not know are passed over.
void read_config(const std::filesystem::path& run_file, param::Schema& schema) {
  const std::string config = Hdf5File::open_read(run_file).read_string("/config");
  (void)schema.read_and_list_problems(param::ParamFile::parse(config, run_file.string() + ".yaml"));
}

}  // namespace

std::int64_t recorded_integer(const std::filesystem::path& run_file, const std::string& section,
                              const std::string& name, std::int64_t fallback) {
  std::int64_t value = fallback;
  param::Schema schema;
  schema.section(section, "").integer(name, value, "");
  read_config(run_file, schema);
  return value;
}

std::string recorded_text(const std::filesystem::path& run_file, const std::string& section,
                          const std::string& name, const std::string& fallback) {
  std::string value = fallback;
  param::Schema schema;
  schema.section(section, "").text(name, value, "");
  read_config(run_file, schema);
  return value;
}

std::vector<std::string> config_changes(const std::string& before, const std::string& now) {
  const Parameters old_ones = parameters_of(before), new_ones = parameters_of(now);
  std::vector<std::string> changes;
  for (const auto& [path, value] : new_ones)
    if (const std::string was = value_of(old_ones, path); was != value)
      changes.push_back(path + ": " + was + " -> " + value);
  for (const auto& [path, value] : old_ones)
    if (const std::string is = value_of(new_ones, path); is == kNone)
      changes.push_back(path + ": " + value + " -> " + is);
  return changes;
}

}  // namespace taper
