// SPDX-License-Identifier: Apache-2.0
#include "simulate/LengthLaw.hpp"

#include <algorithm>
#include <cmath>

#include "base/Random.hpp"

namespace taper {
namespace {

// A log-normal length from a standard normal one: above `tokens` if that is above z.
double tail_length(double tokens, double z, double spread, double normal) {
  return tokens * std::exp(spread * (normal - z));
}

double normal_above(double z) {
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// The z that a standard normal number exceeds with this chance.
double quantile_above(double share) {
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (normal_above(middle) > share ? low : high) = middle;
  }
  return low;
}

// One of each 32 responses of an iteration, at a place that is drawn.
bool is_straggler(const CounterRandom& random, RandomKey key) {
  constexpr std::uint64_t kBlock = 32;
  const std::uint64_t place = key.ordinal % kBlock;
  key.ordinal /= kBlock;
  key.item = 3;
  return place == random.below(key, kBlock);
}

int bounded(double length, int limit) {
  return std::clamp(static_cast<int>(std::min(length, 1.0 * limit)), 1, limit);
}

}  // namespace

const char* to_string(LengthLaw law) {
  switch (law) {
    case LengthLaw::kLogNormal:
      return "log-normal";
    case LengthLaw::kHeavyTail:
      return "heavy-tail";
    case LengthLaw::kNarrow:
      return "no-tail";
    case LengthLaw::kBimodal:
      return "bimodal";
    case LengthLaw::kTruncated:
      return "truncated";
    case LengthLaw::kDrifting:
      return "drifting";
    case LengthLaw::kStraggler:
      return "straggler";
  }
  return "";
}

const std::vector<LengthLaw>& all_length_laws() {
  static const std::vector<LengthLaw> laws{
      LengthLaw::kLogNormal, LengthLaw::kHeavyTail, LengthLaw::kNarrow,   LengthLaw::kBimodal,
      LengthLaw::kTruncated, LengthLaw::kDrifting,  LengthLaw::kStraggler};
  return laws;
}

std::vector<std::pair<std::string, LengthLaw>> named_length_laws() {
  std::vector<std::pair<std::string, LengthLaw>> named;
  for (const LengthLaw law : all_length_laws()) named.emplace_back(to_string(law), law);
  return named;
}

std::optional<LengthLaw> length_law(const std::string& name) {
  for (const LengthLaw law : all_length_laws())
    if (name == to_string(law)) return law;
  return std::nullopt;
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
        length = tail_length(limit * 0.5, 1.2345, 1.1, normal);
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
      case LengthLaw::kStraggler:
        length = is_straggler(random, key) ? limit : limit * 0.03 * std::exp(0.3 * normal);
        break;
    }
    lengths.push_back(bounded(length, limit));
  }
  return lengths;
}

double TailLaw::share_above(double tokens) const {
  return normal_above(quantile_above(long_share) + std::log(tokens / long_tokens) / spread);
}

std::vector<int> draw_lengths(const TailLaw& law, std::uint64_t seed, std::int64_t iteration,
                              int prompts, int samples, int limit) {
  const CounterRandom random(seed);
  const double z = quantile_above(law.long_share);
  const auto normal = [&](int ordinal, std::uint64_t sample) {
    return random.normal({RandomPurpose::kTest, static_cast<std::uint64_t>(iteration),
                          static_cast<std::uint64_t>(ordinal), sample, 1, 0});
  };
  std::vector<int> lengths;
  for (int prompt = 0; prompt < prompts; ++prompt) {
    const double common = normal(prompt, 0);
    for (int sample = 0; sample < samples; ++sample) {
      const double own = normal(prompt, static_cast<std::uint64_t>(sample) + 1);
      const double mixed = std::sqrt(law.likeness) * common + std::sqrt(1 - law.likeness) * own;
      lengths.push_back(bounded(tail_length(law.long_tokens, z, law.spread, mixed), limit));
    }
  }
  return lengths;
}

}  // namespace taper
