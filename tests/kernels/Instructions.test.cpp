// SPDX-License-Identifier: Apache-2.0
#include "kernels/Instructions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/detail/ChosenOps.hpp"

using namespace taper;

TEST_CASE("the instructions in use are those of the kernels", "[host_ops]") {
  CHECK(host_instructions().widest == detail::host_ops().set);
  CHECK(to_string(InstructionSet::kScalar) == std::string("scalar"));
  CHECK(to_string(InstructionSet::kAmx) == std::string("amx"));
}

// What the system says of the processor, by other means than those of the program.
TEST_CASE("sets are found that the system lists", "[host_ops]") {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto begin = text.find("flags");
  if (begin == std::string::npos) return;  // no processor of x86
  const std::string flags = text.substr(begin, text.find('\n', begin) - begin) + " ";
  const auto lists = [&](const std::string& flag) {
    return flags.find(" " + flag + " ") != std::string::npos;
  };
  const auto is_there = [](InstructionSet set) {
    return detail::find_instructions(InstructionSet::kAmx)[static_cast<std::size_t>(set)].is_there;
  };
  CHECK(is_there(InstructionSet::kScalar));
  CHECK(is_there(InstructionSet::kAvx2) == (lists("avx2") && lists("fma")));
  CHECK(is_there(InstructionSet::kAvx512) ==
        (lists("avx512f") && lists("avx512bw") && lists("avx512dq") && lists("avx512vl")));
  CHECK(is_there(InstructionSet::kAvx512Bf16) == lists("avx512_bf16"));
  CHECK(is_there(InstructionSet::kAmx) == (lists("amx_tile") && lists("amx_bf16")));
}
