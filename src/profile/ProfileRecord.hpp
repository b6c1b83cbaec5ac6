// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "profile/ProfileGrid.hpp"

namespace taper {

// A profile in the making, kept in a side file so that an interrupted one goes on. Costs of
// switching are measured anew: they take a second.
struct ProfileRecord {
  ProfileIdentity identity;
  Facts settings;  // the options that decide what can be measured
  double seconds_spent = 0;
  double budget = 0;       // seconds; 0: not decided yet
  double first_round = 0;  // seconds until each point had been visited once; 0: that is to come
  bool ended = false;      // by the budget, before all was done
  std::vector<ProfilePoint> points;
};

// <output>.partial
std::filesystem::path partial_path(const std::filesystem::path& output);

// Replaces the side file of `output` in one step.
void save_partial(const std::filesystem::path& output, const ProfileRecord& record);
// Throws Error if the side file cannot be read.
ProfileRecord load_partial(const std::filesystem::path& output);

enum class Completeness { kPartial, kComplete };

// Throws Error saying what differs if `found` (of the file `name`) was not measured on the model,
// machine and transport of `here`; suggests --fresh. Another build or clock is a warning if the
// file is complete, and an error if it is still in the making.
void require_same_identity(const std::filesystem::path& name, Completeness completeness,
                           const ProfileIdentity& found, const ProfileIdentity& here);

}  // namespace taper
