// SPDX-License-Identifier: Apache-2.0
#include "device/HostMemory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <vector>

using namespace taper;
namespace fs = std::filesystem;

namespace {

// A made-up mount of control groups, removed at the end.
struct Mount {
  Mount() : path(fs::temp_directory_path() / ("taper-cgroup-" + std::to_string(::getpid()))) {}
  ~Mount() { fs::remove_all(path); }
  void add(const std::string& file, const std::string& text) const {
    fs::create_directories((path / file).parent_path());
    std::ofstream(path / file) << text;
  }
  fs::path path;
};

}  // namespace

TEST_CASE("the tightest control group above a process counts") {
  const Mount mount;
  CHECK(cgroup_memory_left("0::/job/step\n", mount.path) == 0);  // nothing there
  mount.add("job/memory.max", "1000\n");
  mount.add("job/memory.current", "700\n");
  mount.add("job/memory.stat", "anon 500\ninactive_file 50\nactive_file 100\n");
  mount.add("job/step/memory.max", "max\n");
  mount.add("job/step/memory.current", "700\n");
  CHECK(cgroup_memory_left("0::/job/step\n", mount.path) == 350);
  mount.add("job/step/memory.max", "800\n");
  CHECK(cgroup_memory_left("0::/job/step\n", mount.path) == 100);
  CHECK(cgroup_memory_left("0::/other\n", mount.path) == 0);
  mount.add("job/step/memory.max",
            "600\n");  // more in use than allowed: nothing left, not no limit
  CHECK(cgroup_memory_left("0::/job/step\n", mount.path) == 1);
}

TEST_CASE("control groups of version 1 are read where memory is theirs") {
  const Mount mount;
  mount.add("memory/slurm/job_7/memory.limit_in_bytes", "9223372036854771712\n");
  mount.add("memory/slurm/job_7/memory.usage_in_bytes", "10\n");
  mount.add("memory/slurm/memory.limit_in_bytes", "5000\n");
  mount.add("memory/slurm/memory.usage_in_bytes", "1000\n");
  const std::string groups = "5:cpu,cpuacct:/slurm/job_7\n4:memory:/slurm/job_7\n";
  CHECK(cgroup_memory_left(groups, mount.path) == 4000);
  CHECK(cgroup_memory_left("5:cpu:/slurm/job_7\n", mount.path) == 0);
}

TEST_CASE("the address-space limit bounds what a process gets, not its host") {
#ifdef __SANITIZE_ADDRESS__
  SKIP("a sanitizer needs address space without limit");
#endif
  CHECK(host_memory_left() > 0);
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_AS, &old) == 0);
  rlimit small = old;
  small.rlim_cur = rlim_t{1} << 20;  // less than this process has already
  REQUIRE(setrlimit(RLIMIT_AS, &small) == 0);
  const std::int64_t process = process_memory_left(), host = host_memory_left();
  REQUIRE(setrlimit(RLIMIT_AS, &old) == 0);
  CHECK(process == 1);
  CHECK(host > 1 << 20);
  if (old.rlim_cur == RLIM_INFINITY) CHECK(process_memory_left() == 0);
}

TEST_CASE("the peak of a process rises with what it touches, and stays") {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const std::int64_t before = process_memory_peak();
  CHECK(before > 0);
  {
    // More than the peak so far, whatever has been given back of that.
    const std::vector<char> touched(static_cast<std::size_t>(before + kBytes), 1);
    CHECK(process_memory_peak() >= before + kBytes);
    CHECK(touched.back() == 1);
  }
  CHECK(process_memory_peak() >= before + kBytes);
}
