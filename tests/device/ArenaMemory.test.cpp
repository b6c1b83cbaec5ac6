// SPDX-License-Identifier: Apache-2.0
#include "device/ArenaMemory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

std::uintptr_t address(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);
}

// The flags of the mapping that holds an address (the last line of its entry in smaps); empty if
// the system does not tell.
std::string mapping_flags(std::uintptr_t address) {
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      here = begin <= address && address < end;
    else if (here && line.starts_with("VmFlags:"))
      return line + " ";
  }
  return {};
}

}  // namespace

TEST_CASE("large memory begins on a large page and asks for them") {
  const ArenaMemory memory(5 * ArenaMemory::kLargePage + 12345);
  CHECK(memory.bytes() == 5 * ArenaMemory::kLargePage + 12345);
  CHECK(address(memory.base()) % ArenaMemory::kLargePage == 0);
  const std::string flags = mapping_flags(address(memory.base()));
  if (!flags.empty() && std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
    CHECK_THAT(flags, ContainsSubstring(" hg "));
}

TEST_CASE("populated memory is there before anyone touches it") {
  constexpr std::int64_t kBytes = 2 * ArenaMemory::kLargePage;
  ArenaMemory memory(kBytes);
  const auto resident = [&] {
    const auto page = static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> states(static_cast<std::size_t>(kBytes / page));
    REQUIRE(::mincore(memory.base(), static_cast<std::size_t>(kBytes), states.data()) == 0);
    return std::count_if(states.begin(), states.end(), [](unsigned char s) { return s & 1; });
  };
  CHECK(resident() == 0);
  memory.populate();
#ifdef MADV_POPULATE_WRITE
  CHECK(resident() == kBytes / static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE)));
#endif
  CHECK(memory.base()[kBytes - 1] == 0);
}
