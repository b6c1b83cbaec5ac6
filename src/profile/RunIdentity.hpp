// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "instance/ModelFiles.hpp"
#include "kernels/product.hpp"
#include "planner/LatencyProfile.hpp"
#include "session/Ranks.hpp"

namespace taper {

// The facts of this run that a latency profile depends on, as rank 0 sees them: equal on all ranks.
// Collective over the world.
ProfileIdentity gather_identity(const ModelFiles& files, WeightType type, const Ranks& ranks);

// Of the facts of a model those that decide what a pass over its layers costs.
Facts shape_facts(const ModelConfig& config);

// Whether a setting of the transport, by its name, does not change its speed.
bool is_harmless_setting(std::string_view name);

// Of an environment as lines "NAME=value": the settings of the transport that change its speed
// under this MPI library ("MPICH 4.0.2"), without harmless ones. Sorted by name.
Facts transport_settings(const std::vector<std::string>& environment, const std::string& library);

// The parts of an identity by name, in the order of their importance.
struct IdentityPart {
  const char* name;
  Facts ProfileIdentity::*facts;
};
inline constexpr std::array<IdentityPart, 5> kIdentityParts{{
    {"model", &ProfileIdentity::model},
    {"machine", &ProfileIdentity::machine},
    {"transport", &ProfileIdentity::transport},
    {"build", &ProfileIdentity::build},
    {"clock", &ProfileIdentity::clock},
}};

// The parts of an identity as lines of text, and back. Texts of facts have no line breaks.
std::string to_lines(const ProfileIdentity& identity);
ProfileIdentity identity_from_lines(const std::string& lines);

}  // namespace taper
