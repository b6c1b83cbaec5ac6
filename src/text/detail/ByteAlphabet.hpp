// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace taper::detail {

// The alphabet of byte-level BPE (GPT-2): each byte is one printable character. Bytes 33-126,
// 161-172 and 174-255 are themselves as code points; the others follow from U+0100 on in ascending
// order.
std::string to_byte_alphabet(std::string_view bytes);

// The bytes of a text in that alphabet; nothing if a character is outside it.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace taper::detail
