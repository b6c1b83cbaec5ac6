// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/ChosenOps.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "base/Error.hpp"

using namespace taper;
using namespace taper::detail;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

#if defined(__x86_64__)

namespace {

// A processor with so many sets, from the narrowest on.
InstructionTable with_sets(std::size_t count) {
  InstructionTable found;
  for (std::size_t i = 0; i < found.size(); ++i)
    found[i] = i < count ? FoundInstructions{true, ""} : FoundInstructions{false, "it has none"};
  return found;
}

std::string chosen(const std::string& wish, const InstructionTable& found) {
  return to_string(choose_host_ops(wish, found).set);
}

}  // namespace

TEST_CASE("the widest set of instructions is chosen, up to the one asked for", "[host_ops]") {
  for (std::size_t count = 1; count <= kInstructionSetNames.size(); ++count) {
    CHECK(chosen("", with_sets(count)) == kInstructionSetNames[count - 1]);
    for (std::size_t wish = 0; wish < count; ++wish)
      CHECK(chosen(kInstructionSetNames[wish], with_sets(count)) == kInstructionSetNames[wish]);
  }
  const HostOps dot = choose_host_ops("avx512bf16", with_sets(5)),
                all = choose_host_ops("", with_sets(5));
  CHECK(dot.pairs.dot_product == kAvx512Bf16PairOps.dot_product);
  CHECK(dot.tile_product == kAvx512Ops.tile_product);
  CHECK(all.pairs.dot_product == kAvx512Bf16PairOps.dot_product);
  CHECK(all.tile_product == amx_product);
}

TEST_CASE("units beyond the set asked for are not looked for", "[host_ops]") {
  CHECK(instruction_set("") == InstructionSet::kAmx);
  CHECK(instruction_set("avx2") == InstructionSet::kAvx2);
  const InstructionTable found = find_instructions(instruction_set("scalar"));
  CHECK(found.front().lack.empty());
  for (std::size_t i = 1; i < found.size(); ++i) {
    CHECK_FALSE(found[i].is_there);
    CHECK_FALSE(found[i].lack.empty());
  }
}

TEST_CASE("units that cannot be used are left out", "[host_ops]") {
  InstructionTable found = with_sets(5);
  found[4].lack = "the kernel of this system does not permit AMX";
  CHECK(chosen("", found) == "avx512bf16");
  found[3].lack = "this processor's AVX512-BF16 rounds differently";
  const HostOps ops = choose_host_ops("", found);
  CHECK(ops.set == InstructionSet::kAvx512);
  CHECK(ops.pairs.dot_product == kAvx512Ops.pairs.dot_product);
  CHECK(ops.tile_product == kAvx512Ops.tile_product);
}

TEST_CASE("instructions that do not exist or cannot be used are refused", "[host_ops]") {
  CHECK_THROWS_MATCHES(
      choose_host_ops("sse", with_sets(5)), Error,
      MessageMatches(ContainsSubstring(
          "TAPER_ISA is 'sse' (choose scalar, avx2, avx512, avx512bf16, amx, or unset it)")));
  CHECK_THROWS_MATCHES(
      choose_host_ops("amx", with_sets(4)), Error,
      MessageMatches(ContainsSubstring("TAPER_ISA is amx (it has none); unset it")));
  CHECK_THROWS_AS(choose_host_ops("avx2", with_sets(1)), Error);
}

#endif
