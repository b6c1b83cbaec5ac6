// SPDX-License-Identifier: Apache-2.0
#include "base/Checksum.hpp"

#include <cstring>

namespace taper {
namespace {
constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ull;

std::uint64_t mix(std::uint64_t lane, std::uint64_t word) {
  lane = (lane ^ word) * kOdd;
  return lane ^ (lane >> 32);
}
}  // namespace

void Checksum64::add_word(std::uint64_t word) {
  lanes_[words_ % 4] = mix(lanes_[words_ % 4], word);
  ++words_;
}

void Checksum64::add(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  while (left > 0 && tail_size_ > 0) {  // complete the word begun before
    tail_[tail_size_++] = *at++;
    --left;
    if (tail_size_ < 8) continue;
    std::uint64_t word;
    std::memcpy(&word, tail_, 8);
    add_word(word);
    tail_size_ = 0;
  }
  for (; left >= 32 && words_ % 4 == 0; at += 32, left -= 32, words_ += 4) {
    std::uint64_t w[4];
    std::memcpy(w, at, 32);
    for (int k = 0; k < 4; ++k) lanes_[k] = mix(lanes_[k], w[k]);
  }
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    add_word(word);
  }
  if (left > 0) std::memcpy(tail_, at, left);
  if (left > 0) tail_size_ = static_cast<int>(left);
}

std::uint64_t Checksum64::value() const {
  std::uint64_t rest = 0;
  std::memcpy(&rest, tail_, tail_size_);
  std::uint64_t sum = mix(words_ * 8 + tail_size_, rest);
  for (const std::uint64_t lane : lanes_) sum = mix(sum, lane);
  return sum;
}

}  // namespace taper
