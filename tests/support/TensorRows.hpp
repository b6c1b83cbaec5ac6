// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "io/Safetensors.hpp"

namespace taper::test {

// Rows [begin, end) of a tensor of a SafetensorsFile or a SafetensorsDir as f32, row-major.
template <class Files>
void read_rows(const Files& files, const std::string& name, std::int64_t begin, std::int64_t end,
               std::span<float> out) {
  files.read_f32_block(name, begin, end, 0, files.tensor(name).columns(), out);
}

}  // namespace taper::test
