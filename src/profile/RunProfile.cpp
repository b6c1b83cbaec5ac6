// SPDX-License-Identifier: Apache-2.0
#include "profile/RunProfile.hpp"

#include <string>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "profile/ProfileFile.hpp"
#include "profile/ProfileTable.hpp"

namespace taper {

LatencyProfile read_matching_profile(const std::filesystem::path& path, const ProfileIdentity& here,
                                     const Ranks& ranks, const std::vector<int>& degrees) {
  LatencyProfile profile = read_profile(path);
  require_equal(ranks, path_text(path), std::to_string(content_hash(profile)));
  const ProfileMatch match = compare_identity(profile.identity, here);
  TAPER_VALIDATE(match.refusals.empty(),
                 path_text(path) << " is not valid for this run: " << join(match.refusals, "; ")
                                 << "; measure a profile here with taper profile");
  require_degrees(profile, degrees);
  if (ranks.rank() != 0) return profile;
  for (const auto& text : match.warnings) TAPER_WARN(path_text(path) << ": " << text);
  if (!profile.is_complete())
    TAPER_WARN(path_text(path) << " is " << completeness_problem(profile));
  return profile;
}

}  // namespace taper
