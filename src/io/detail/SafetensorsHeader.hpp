// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "io/Safetensors.hpp"

namespace taper::detail {

inline constexpr std::size_t kSafetensorsPrefix = 8;  // header length, little-endian
inline constexpr std::size_t kMostHeaderBytes = 100'000'000;

// Parses and checks the header of a whole file: the tensors by name. Errors name the file and the
// tensor.
std::map<std::string, TensorView> parse_safetensors_header(const std::string& path,
                                                           std::span<const std::byte> file);

// Bytes of a tensor; throws if shape or product are impossible. where stands in front of the
// error.
std::size_t tensor_bytes(const std::string& where, TensorType type,
                         const std::vector<std::int64_t>& shape);

}  // namespace taper::detail
