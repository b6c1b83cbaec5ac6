// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "planner/LatencyProfile.hpp"
#include "session/Ranks.hpp"

namespace taper {

// The profile of a run whose identity is `here` (gather_identity): read and checked, the same on
// all ranks. Throws Error if it is missing or damaged, was measured on another model, machine or
// transport, or lacks one of the degrees; warns of another build or clock, and if the profile is
// incomplete. Collective over the world.
LatencyProfile read_matching_profile(const std::filesystem::path& path, const ProfileIdentity& here,
                                     const Ranks& ranks, const std::vector<int>& degrees);

}  // namespace taper
