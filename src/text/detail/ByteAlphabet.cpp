// SPDX-License-Identifier: Apache-2.0
#include "text/detail/ByteAlphabet.hpp"

#include <array>

#include "base/Utf8.hpp"

namespace taper::detail {
namespace {

struct Alphabet {
  std::array<std::string, 256> character;
  std::array<int, 512> byte;  // by code point; -1: not in the alphabet

  Alphabet() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      const char32_t code_point = printable ? static_cast<char32_t>(b) : next++;
      append_utf8(character[b], code_point);
      byte[code_point] = b;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  const auto& characters = alphabet().character;
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 4);
  for (const char b : bytes) text += characters[static_cast<unsigned char>(b)];
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  const auto& byte = alphabet().byte;
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = read_utf8(text, i);
    if (c.value >= byte.size() || byte[c.value] < 0) return std::nullopt;
    bytes += static_cast<char>(byte[c.value]);
    i += c.bytes;
  }
  return bytes;
}

}  // namespace taper::detail
