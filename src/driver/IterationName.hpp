// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace taper {

// What checkpoints and rollout files of an iteration are called: "iter_000012", six digits or as
// many as it needs. From a million on, the order of the names is not that of the iterations.
std::string iteration_name(std::int64_t iteration);

// The iteration of such a name, nothing for all others.
std::optional<std::int64_t> iteration_of_name(std::string_view name);

}  // namespace taper
