// SPDX-License-Identifier: Apache-2.0
#include "model/RopeTable.hpp"

#include <cmath>
#include <numbers>

namespace taper {
namespace {

float scaled_frequency(const RopeScaling& s, float inv_freq) {
  if (s.kind == RopeScaling::Kind::kNone) return inv_freq;
  if (s.kind == RopeScaling::Kind::kLinear) return static_cast<float>(inv_freq / s.factor);
  // Llama 3.1: long waves are stretched by the factor, short ones kept, those between blended.
  const double wave_length = 2.0 * std::numbers::pi / inv_freq;
  const double low_wave = s.original_max_positions / s.low_freq_factor;
  const double high_wave = s.original_max_positions / s.high_freq_factor;
  if (wave_length > low_wave) return static_cast<float>(inv_freq / s.factor);
  if (wave_length < high_wave) return inv_freq;
  const double smooth = (s.original_max_positions / wave_length - s.low_freq_factor) /
                        (s.high_freq_factor - s.low_freq_factor);
  return static_cast<float>((1.0 - smooth) * inv_freq / s.factor + smooth * inv_freq);
}

}  // namespace

std::vector<float> make_rope_table(const ModelConfig& config, int positions) {
  const int half = config.head_dim / 2;
  std::vector<float> inv_freq(half);
  for (int i = 0; i < half; ++i) {
    const double exponent = static_cast<double>(2 * i) / config.head_dim;
    inv_freq[i] = scaled_frequency(config.rope_scaling,
                                   static_cast<float>(1.0 / std::pow(config.rope_theta, exponent)));
  }
  std::vector<float> table(static_cast<std::size_t>(positions) * config.head_dim);
  for (int p = 0; p < positions; ++p) {
    float* row = table.data() + static_cast<std::size_t>(p) * config.head_dim;
    for (int i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * inv_freq[i];
      row[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      row[half + i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }
  return table;
}

}  // namespace taper
