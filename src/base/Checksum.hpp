// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace taper {

// A 64-bit checksum of bytes in order, against damage, not against malice: four lanes of multiply
// and xor, some bytes per cycle. The length counts.
class Checksum64 {
 public:
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  void add_word(std::uint64_t word);

  std::uint64_t lanes_[4] = {0x243F6A8885A308D3ull, 0x13198A2E03707344ull, 0xA4093822299F31D0ull,
                             0x082EFA98EC4E6C89ull};
  std::byte tail_[8] = {};
  int tail_size_ = 0;
  std::uint64_t words_ = 0;
};

template <class T>
std::uint64_t checksum_of(std::span<const T> values) {
  Checksum64 sum;
  sum.add(std::as_bytes(values));
  return sum.value();
}

}  // namespace taper
