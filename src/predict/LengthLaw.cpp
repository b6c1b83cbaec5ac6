// SPDX-License-Identifier: Apache-2.0
#include "predict/LengthLaw.hpp"

#include <algorithm>
#include <cmath>

#include "base/Random.hpp"

namespace taper {

const char* to_string(LengthLaw law) {
  switch (law) {
    case LengthLaw::kLogNormal:
      return "log-normal";
    case LengthLaw::kHeavyTail:
      return "heavy tail";
    case LengthLaw::kNarrow:
      return "no tail";
    case LengthLaw::kBimodal:
      return "bimodal";
    case LengthLaw::kTruncated:
      return "truncated";
    case LengthLaw::kDrifting:
      return "drifting";
  }
  return "";
}

const std::vector<LengthLaw>& all_length_laws() {
  static const std::vector<LengthLaw> laws{LengthLaw::kLogNormal, LengthLaw::kHeavyTail,
                                           LengthLaw::kNarrow,    LengthLaw::kBimodal,
                                           LengthLaw::kTruncated, LengthLaw::kDrifting};
  return laws;
}

std::vector<int> draw_lengths(LengthLaw law, std::uint64_t seed, std::int64_t iteration, int count,
                              int limit) {
  const CounterRandom random(seed);
  std::vector<int> lengths;
  for (int i = 0; i < count; ++i) {
    RandomKey key{RandomPurpose::kTest,
                  static_cast<std::uint64_t>(iteration),
                  static_cast<std::uint64_t>(i),
                  static_cast<std::uint64_t>(law),
                  0,
                  0};
    const double normal = random.normal(key);
    key.item = 2;
    const double uniform = random.uniform(key);
    double length = limit;
    switch (law) {
      case LengthLaw::kLogNormal:
        length = limit * 0.15 * std::exp(0.7 * normal);
        break;
      case LengthLaw::kHeavyTail:
        // P(length > limit / 2) = 0.1085: (ln(1/2) - ln m) / sigma = 1.2345.
        length = limit * 0.5 * std::exp(1.1 * (normal - 1.2345));
        break;
      case LengthLaw::kNarrow:
        length = limit * (0.5 + 0.01 * (uniform - 0.5));
        break;
      case LengthLaw::kBimodal:
        length = limit * (uniform < 0.8 ? 0.12 : 0.8) * std::exp(0.1 * normal);
        break;
      case LengthLaw::kTruncated:
        break;
      case LengthLaw::kDrifting: {
        const auto phase = static_cast<double>(iteration % 16);
        length =
            limit * 0.1 * std::pow(1.07, phase < 8 ? phase : 16 - phase) * std::exp(0.7 * normal);
        break;
      }
    }
    lengths.push_back(std::clamp(static_cast<int>(length), 1, limit));
  }
  return lengths;
}

}  // namespace taper
