// SPDX-License-Identifier: Apache-2.0
#include "base/Checksum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <vector>

using namespace taper;

namespace {
std::vector<std::byte> bytes(std::size_t n) {
  std::vector<std::byte> data(n);
  for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<std::byte>((i * 37 + 11) & 0xff);
  return data;
}
}  // namespace

TEST_CASE("the sum does not depend on how bytes are cut into calls") {
  const auto data = bytes(1003);
  const std::span<const std::byte> all(data);
  Checksum64 whole;
  whole.add(all);
  for (const std::size_t step : {1, 3, 8, 31, 32, 33, 500}) {
    Checksum64 parts;
    for (std::size_t at = 0; at < data.size(); at += step)
      parts.add(all.subspan(at, std::min(step, data.size() - at)));
    CHECK(parts.value() == whole.value());
  }
}

TEST_CASE("any flipped bit and any cut changes the sum") {
  auto data = bytes(200);
  std::set<std::uint64_t> sums{checksum_of(std::span<const std::byte>(data))};
  std::size_t expected = 1;
  for (std::size_t i = 0; i < data.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit, ++expected) {
      data[i] ^= static_cast<std::byte>(1 << bit);
      sums.insert(checksum_of(std::span<const std::byte>(data)));
      data[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
  for (std::size_t n = 0; n < data.size(); ++n, ++expected)
    sums.insert(checksum_of(std::span<const std::byte>(data).first(n)));
  CHECK(sums.size() == expected);
}
