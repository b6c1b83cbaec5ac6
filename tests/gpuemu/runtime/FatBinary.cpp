// SPDX-License-Identifier: Apache-2.0
//
// The containers in which nvcc puts PTX into executables: a wrapper that points at a header, after
// which come entries with a header of their own; kind 1 is PTX, mostly compressed with zstd.
#include <cstring>

#include "gpuemu/runtime/Runtime.hpp"

extern "C" std::size_t ZSTD_decompress(void* to, std::size_t room, const void* from,
                                       std::size_t bytes);
extern "C" unsigned ZSTD_isError(std::size_t code);

namespace taper::gpuemu {
namespace {

template <class T>
T read(const std::uint8_t* at, std::size_t offset) {
  T value;
  std::memcpy(&value, at + offset, sizeof value);
  return value;
}

constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kIsZstd = 0x8000;

}  // namespace

std::vector<std::string> ptx_of(const void* fat_binary) {
  const auto* data = read<const std::uint8_t*>(static_cast<const std::uint8_t*>(fat_binary), 8);
  const auto* at = data + read<std::uint16_t>(data, 6);
  const auto* end = at + read<std::uint64_t>(data, 8);
  std::vector<std::string> texts;
  while (at < end) {
    const auto kind = read<std::uint16_t>(at, 0);
    const auto header = read<std::uint32_t>(at, 4);
    const auto bytes = read<std::uint64_t>(at, 8);
    if (kind == kPtx) {
      std::string text(reinterpret_cast<const char*>(at) + header, bytes);
      if ((read<std::uint64_t>(at, 40) & kIsZstd) != 0) {
        text.assign(read<std::uint64_t>(at, 56), '\0');
        const std::size_t n =
            ZSTD_decompress(text.data(), text.size(), at + header, read<std::uint32_t>(at, 16));
        if (ZSTD_isError(n) != 0) throw Fault("the PTX in the executable cannot be decompressed");
      }
      text.resize(std::strlen(text.c_str()));
      if (text.find(".version") == std::string::npos) {
        throw Fault(
            "the PTX in the executable is compressed in a way that is not known (nvcc "
            "-no-compress, or -compress-mode=size)");
      }
      texts.push_back(std::move(text));
    }
    at += header + bytes;
  }
  return texts;
}

}  // namespace taper::gpuemu
