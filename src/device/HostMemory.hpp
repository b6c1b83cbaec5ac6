// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace taper {

// The least that the control groups of a process leave, from the text of /proc/self/cgroup and the
// folder where control groups are mounted (versions 1 and 2). Pages of files that the kernel can
// drop count as free. 0 if there is no limit.
std::int64_t cgroup_memory_left(const std::string& groups, const std::filesystem::path& mount);

// Bytes that all processes of this host together can still get: the least of what the system says
// and what the control groups leave (batch systems limit jobs by them). 0 if neither says.
std::int64_t host_memory_left();

// Bytes that this process alone can still get: what `ulimit -v` leaves. 0 if there is no limit.
std::int64_t process_memory_left();

// The most bytes that this process has had in memory so far (its resident size).
std::int64_t process_memory_peak();

}  // namespace taper
