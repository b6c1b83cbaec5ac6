// SPDX-License-Identifier: Apache-2.0
#include "device/HostMemory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <sstream>

namespace taper {
namespace {

namespace fs = std::filesystem;

// The number that follows `key` in a file of "key number" lines, or its first word if key is
// empty; -1 if there is none ("max" is none).
std::int64_t number_in(const fs::path& file, const std::string& key = "") {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = -1;
    if (!key.empty()) words >> name;
    if (name == key && words >> value) return value;
  }
  return -1;
}

// The lesser of two amounts of which 0 means "not limited".
std::int64_t lesser(std::int64_t a, std::int64_t b) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  return std::min(a, b);
}

std::int64_t left_in(const fs::path& folder, bool version_2) {
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;  // version 1 says "no limit" like this
  const auto limit = number_in(folder / (version_2 ? "memory.max" : "memory.limit_in_bytes"));
  const auto used = number_in(folder / (version_2 ? "memory.current" : "memory.usage_in_bytes"));
  if (limit < 0 || used < 0 || limit >= kNoLimit) return 0;
  const auto droppable =
      number_in(folder / "memory.stat", version_2 ? "inactive_file" : "total_inactive_file");
  return std::max<std::int64_t>(1, limit - used + std::max<std::int64_t>(droppable, 0));
}

}  // namespace

std::int64_t cgroup_memory_left(const std::string& groups, const fs::path& mount) {
  std::int64_t left = 0;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:path
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version_2 = controllers.empty();
    if (!version_2 && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const fs::path root = version_2 ? mount : mount / "memory";
    // Limits stand at any level: the batch system sets them above the step that runs this process.
    for (fs::path path = fs::path(line.substr(second + 1)).relative_path();;
         path = path.parent_path()) {
      left = lesser(left, left_in(root / path, version_2));
      if (path.empty()) break;
    }
  }
  return left;
}

std::int64_t host_memory_left() {
  const std::int64_t kilobytes = number_in("/proc/meminfo", "MemAvailable:");
  std::ifstream own("/proc/self/cgroup");
  std::stringstream groups;
  groups << own.rdbuf();
  return lesser(std::max<std::int64_t>(kilobytes, 0) * 1024,
                cgroup_memory_left(groups.str(), "/sys/fs/cgroup"));
}

std::int64_t process_memory_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  const std::int64_t pages = number_in("/proc/self/statm");
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(limit.rlim_cur) - pages * ::sysconf(_SC_PAGESIZE));
}

std::int64_t process_memory_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{1024} * usage.ru_maxrss;  // Linux counts KiB
}

}  // namespace taper
