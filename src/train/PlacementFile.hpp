// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "param/ParamFile.hpp"
#include "planner/LatencyProfile.hpp"
#include "train/Preset.hpp"

namespace taper {

// A placement that was searched for (taper plan), as runs read it: Placement/File.
struct PlacementFile {
  int ranks = 0;
  std::vector<std::string> models;  // of the run that it was made for
  ProfileIdentity identity;         // of the profile of the policy
  double seconds = 0;               // of an iteration, predicted
  double flat_seconds = 0;          // the same with all models on all ranks
  std::vector<Setting> settings;    // "Placement/Policy", "0:1x1"; ...
};

// Replaces the file in one step. On one rank.
void write_placement_file(const std::filesystem::path& path, const PlacementFile& placement);
// Throws Error naming the file, and the line, if it is missing or no plan.
PlacementFile read_placement_file(const std::filesystem::path& path);

// Adds the settings of the plan that the file names in Placement/File, if Placement/Strategy is
// plan, but those that it has itself. Throws Error if the plan cannot be read.
void apply_placement_file(param::ParamFile& file);

// Throws Error if the plan was made for another number of ranks: before its degrees are looked at.
void require_placement_ranks(const std::filesystem::path& path, const PlacementFile& placement,
                             int ranks);

// Throws Error naming what differs if the plan was made for other ranks, models, machines or
// transports than those of the run that has this identity; warns of another build or clock.
void require_fitting_placement(const std::filesystem::path& path, const PlacementFile& placement,
                               int ranks, const std::vector<std::string>& models,
                               const ProfileIdentity& here);

}  // namespace taper
