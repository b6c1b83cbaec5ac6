// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace taper::gpuemu {

std::uint16_t float_to_bf16(float x);  // to nearest even, NaN is 0x7fff
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float x);

}  // namespace taper::gpuemu
