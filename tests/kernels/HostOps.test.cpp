// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostOps.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kernels/CheckOp.hpp"
#include "kernels/detail/Launch.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("the chosen instruction set is the one asked for", "[host_ops]") {
  if (const char* wish = std::getenv("TAPER_ISA"))
    CHECK(to_string(detail::host_ops().set) == std::string(wish));
}

TEST_CASE("vectors round operands as to_operand() does, whatever their number", "[host_ops]") {
  flush_denormals();
  const detail::PairOps& ops = detail::host_ops().pairs;
  // All signs and exponents, with significands below, at and above ties, infinities and NaNs.
  Floats values;
  for (std::uint32_t exponent = 0; exponent < 512; ++exponent)
    for (const std::uint32_t significand : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0x18000u,
                                            0x400000u, 0x7f7fffu, 0x7f8000u, 0x7fffffu})
      values.push_back(std::bit_cast<float>(exponent << 23 | significand));
  // Which NaN it is may differ.
  const auto agree = [](bf16 seen, float value) {
    const bf16 expected = to_operand(value);
    return seen.bits == expected.bits ||
           (std::isnan(to_float(seen)) && std::isnan(to_float(expected)));
  };
  for (const int n : {1, 2, 15, 16, 17, 31, 32, 33, 47, 64, static_cast<int>(values.size()) - 1}) {
    INFO(n << " values");
    std::vector<bf16> rounded((n + 1) / 2 * 2 + 2, bf16{0x1234});
    ops.round(rounded.data(), values.data() + 1, n);
    for (int i = 0; i < n; ++i) REQUIRE(agree(rounded[i], values[i + 1]));
    if (n % 2 != 0) REQUIRE(rounded[n].bits == 0);
    REQUIRE(rounded[(n + 1) / 2 * 2].bits == 0x1234);
  }
  // Rows of 10 columns, in pairs of rows 32 apart.
  constexpr int kRows = 511, kColumns = 10, kWidth = 32;
  std::vector<Bf16Pair> pairs((kRows + 1) / 2 * kWidth);
  ops.round_pairs(pairs.data(), kWidth, values.data(), kColumns, kRows, kColumns);
  for (int r = 0; r < kRows + 1; ++r)
    for (int c = 0; c < kWidth; ++c) {
      const Bf16Pair pair = pairs[r / 2 * kWidth + c];
      const bf16 seen = r % 2 == 0 ? pair.first : pair.second;
      REQUIRE(agree(seen, r < kRows && c < kColumns ? values[r * kColumns + c] : 0.0f));
    }
}

TEST_CASE("denormals are flushed in every computing thread", "[host_ops]") {
  flush_denormals();
  Floats tiny(4096, 1e-20f), sums(tiny.size());  // 1e-40 would be 1e-10 in the end
  detail::for_each("taper::test_flush", HostExec(), 4096,
                   [&](const std::int64_t i) { sums[i] = tiny[i] * tiny[i] * 1e30f; });
  for (const float value : sums) REQUIRE(value == 0.0f);
}
