// SPDX-License-Identifier: Apache-2.0
#include "planner/PromptLikeness.hpp"

#include <algorithm>
#include <vector>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "planner/Fading.hpp"

namespace taper {
namespace {

constexpr std::int64_t kOne = 65536;
constexpr std::int64_t kPrior = 8 * kOne;  // prompts of "not alike"

// Twice the rank of each length, less the mean: equal lengths share the middle of their ranks.
std::vector<std::int64_t> centred_ranks(std::span<const int> lengths) {
  std::vector<int> sorted(lengths.begin(), lengths.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> ranks;
  for (const int length : lengths) {
    const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), length);
    ranks.push_back((low - sorted.begin()) + (high - sorted.begin()) - std::ssize(sorted));
  }
  return ranks;
}

}  // namespace

PromptLikeness::PromptLikeness(int half_life) : half_life_(half_life) {}

void PromptLikeness::learn(std::span<const int> lengths, int samples) {
  const std::int64_t prompts = samples > 1 ? std::ssize(lengths) / samples : 0;
  if (prompts < 2) return;
  const auto ranks = centred_ranks(lengths.first(static_cast<std::size_t>(prompts * samples)));
  std::int64_t squares = 0, products = 0;  // of all; of pairs of one prompt, both ways round
  for (std::int64_t p = 0; p < prompts; ++p) {
    std::int64_t sum = 0, own = 0;
    for (std::int64_t i = p * samples; i < (p + 1) * samples; ++i) {
      sum += ranks[i];
      own += ranks[i] * ranks[i];
    }
    squares += own;
    products += sum * sum - own;
  }
  const std::int64_t variance = squares / (prompts * samples);
  if (variance == 0) return;  // all of one length, which says nothing
  const std::int64_t covariance = products / (prompts * samples * (samples - 1));
  correlation_ = faded(correlation_, half_life_) + covariance * kOne / variance * prompts;
  weight_ = faded(weight_, half_life_) + prompts * kOne;
}

int PromptLikeness::share() const {
  const std::int64_t squared = std::max<std::int64_t>(0, correlation_) * kOne / (weight_ + kPrior);
  std::int64_t root = 0;  // of squared * kOne
  for (std::int64_t bit = kOne; bit > 0; bit /= 2)
    if ((root + bit) * (root + bit) <= squared * kOne) root += bit;
  return static_cast<int>(std::min(root, kOne));
}

std::string PromptLikeness::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  out.value(correlation_);
  out.value(weight_);
  return bytes;
}

void PromptLikeness::load(std::string_view bytes) {
  ByteReader in(bytes);
  in.value(correlation_);
  in.value(weight_);
  TAPER_VALIDATE(in.done() && weight_ >= 0, "the saved likeness of prompts is damaged");
}

}  // namespace taper
