// SPDX-License-Identifier: Apache-2.0
//
// Bits of small floats, and of the dot product that tensor cores compute. The model is that of
// Khattak and Mikaitis (arXiv 2512.07004) and MMA-Sim (arXiv 2511.10909): products are exact, all
// terms are aligned to the largest exponent and cut to F fraction bits, added exactly, and the sum
// is rounded toward zero. tests/gpuemu/README.md lists what of it a device has still to confirm.
#pragma once

#include <cstdint>
#include <span>

namespace taper::gpuemu {

float bf16_to_float(std::uint16_t bits);
std::uint16_t float_to_bf16(float x);  // to nearest even, NaN is 0x7fff
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float x);

// What one step of an architecture adds at once.
struct DotModel {
  int products;       // before the accumulator is rounded
  int fraction_bits;  // of aligned terms
};
constexpr DotModel dot_model(int architecture) {
  return architecture >= 90 ? DotModel{16, 25} : DotModel{8, 24};
}

// c + sum of a[k] b[k] over bf16 values, in one step. a.size() <= 16.
float dot_step(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, float c,
               int fraction_bits);

// The same over any number of values, in steps of the model, ascending.
float dot(std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, float c,
          const DotModel& model);

}  // namespace taper::gpuemu
