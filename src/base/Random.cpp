// SPDX-License-Identifier: Apache-2.0
#include "base/Random.hpp"

#include <cmath>
#include <numbers>

#include "base/Error.hpp"

namespace taper {
namespace {

void check_width(std::uint64_t value, int bits, const char* field) {
  TAPER_VALIDATE(value < (std::uint64_t{1} << bits),
                 "random key field '" << field << "' is " << value << " (it has " << bits
                                      << " bits, a larger value would repeat random numbers)");
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c,
                                        std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

std::uint64_t CounterRandom::bits(const RandomKey& key) const {
  check_width(key.iteration, 24, "iteration");
  check_width(key.ordinal, 32, "ordinal");
  check_width(key.sample, 16, "sample");
  check_width(key.position, 24, "position");
  check_width(key.item, 24, "item");
  const std::uint64_t purpose = static_cast<std::uint8_t>(key.purpose);
  const std::uint64_t low = (purpose << 56) | (key.iteration << 32) | key.ordinal;
  const std::uint64_t high = (key.sample << 48) | (key.position << 24) | key.item;
  const auto r =
      philox4x32({static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                  static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)},
                 {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  return (std::uint64_t{r[1]} << 32) | r[0];
}

double CounterRandom::uniform(const RandomKey& key) const {
  return (static_cast<double>(bits(key) >> 11) + 0.5) * 0x1.0p-53;
}

std::uint64_t CounterRandom::below(const RandomKey& key, std::uint64_t bound) const {
  TAPER_EXPECT(bound > 0);
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(key)) * bound) >> 64);
}

double CounterRandom::normal(const RandomKey& key) const {
  const std::uint64_t b = bits(key);
  const double u = (static_cast<double>(b >> 32) + 0.5) * 0x1.0p-32;
  const double v = (static_cast<double>(b & 0xffffffffu) + 0.5) * 0x1.0p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace taper
