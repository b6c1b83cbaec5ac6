// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "param/ParamFile.hpp"

namespace taper {

// Path and value of a parameter, as in a run file.
using Setting = std::pair<std::string, std::string>;

// A named algorithm: settings that a run file need not spell out.
struct Preset {
  std::string name, summary;
  std::vector<Setting> settings;
};

// All presets; doc/algorithms.md says where their values come from.
const std::vector<Preset>& presets();

// The names with themselves, "none" first, for the schema.
std::vector<std::pair<std::string, std::string>> named_presets();

// What became of the settings of a preset.
struct AppliedPreset {
  std::string name;              // empty: the file names none
  std::vector<Setting> set;      // by the preset
  std::vector<Setting> of_file;  // the file has its own value

  // For people; empty without a preset.
  std::string summary() const;
};

// Adds the settings of the preset that the file names in Algorithm/Preset, but those that it has
// itself. A name that is no preset changes nothing: the schema refuses it.
AppliedPreset apply_preset(param::ParamFile& file);

}  // namespace taper
