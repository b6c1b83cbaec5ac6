// SPDX-License-Identifier: Apache-2.0
#include "planner/LengthModel.hpp"

#include <algorithm>
#include <bit>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "base/ReplicaSnapshot.hpp"
#include "planner/Fading.hpp"

namespace taper {
namespace {

constexpr std::int64_t kOne = 65536;
constexpr int kPerOctave = 64;
constexpr int kSingle = 63;   // lengths 1 to 63 have a bin each
constexpr int kOctaves = 14;  // above them
constexpr int kBins = kSingle + kPerOctave * kOctaves;
constexpr std::uint32_t kCertain = 0xffffffffu;
constexpr std::int64_t kPrior = 2 * kOne;          // weight of the shrinkage, responses
constexpr std::int64_t kPriorHazard = kOne / 200;  // per bin if nothing is known
constexpr std::int64_t kScaleWeight = 6 * kOne;    // of "as in past generations"

// Lower edge of a bin.
int edge(int bin) {
  if (bin < kSingle) return bin + 1;
  return (kPerOctave + (bin - kSingle) % kPerOctave) << ((bin - kSingle) / kPerOctave);
}

int bin_of(int length) {
  if (length <= kSingle) return std::max(0, length - 1);
  const int octave = static_cast<int>(std::bit_width(static_cast<unsigned>(length))) - 7;
  return std::min(kBins - 1, kSingle + octave * kPerOctave + (length >> octave) - kPerOctave);
}

// Bins below 64 tokens are wider than 1/64 octave: how many such steps.
std::int64_t steps_of(int bin) {
  return bin < kSingle ? kPerOctave / (bin + 1) : 1;
}

std::uint32_t thin(std::uint32_t survival, std::int64_t hazard) {
  const auto keep = static_cast<std::uint64_t>(kOne - std::clamp<std::int64_t>(hazard, 0, kOne));
  return static_cast<std::uint32_t>(survival * keep / kOne);
}

}  // namespace

LengthModel::LengthModel(int half_life)
    : half_life_(half_life), at_risk_(kBins, 0), ended_(kBins, 0) {
  fit();
}

void LengthModel::begin(int limit) {
  TAPER_VALIDATE(limit > 0, "the limit of response tokens must be positive");
  limit_ = limit;
  seen_expected_ = seen_ended_ = 0;
  rescale();
}

int LengthModel::scale() const {
  return static_cast<int>(std::clamp<std::int64_t>(
      (kScaleWeight + seen_ended_) * kRatioOne / (kScaleWeight + seen_expected_), kRatioOne / 4,
      4 * kRatioOne));
}

// Hazards and survival as past generations have shown them.
void LengthModel::fit() {
  hazards_.assign(kBins, 0);
  learned_.assign(kBins + 1, kCertain);
  std::int64_t near_ended = 0, near_risk = 0;  // of the shorter lengths, fading
  for (int b = 0; b < kBins; ++b) {
    const std::int64_t steps = steps_of(b);
    const std::int64_t prior =
        steps * ((near_ended * kOne + kPrior * kPriorHazard) / (near_risk + kPrior));
    hazards_[b] = (ended_[b] * kOne + kPrior * std::min(kOne, prior)) / (at_risk_[b] + kPrior);
    learned_[b + 1] = thin(learned_[b], hazards_[b]);
    near_ended = near_ended * 31 / 32 + ended_[b];
    near_risk = near_risk * 31 / 32 + at_risk_[b] * steps;
  }
  rescale();
}

// Survival, corrected by what the present generation has shown.
void LengthModel::rescale() {
  const int factor = scale();
  scaled_.assign(kBins + 1, kCertain);
  for (int b = 0; b < kBins; ++b)
    scaled_[b + 1] = thin(scaled_[b], hazards_[b] * factor / kRatioOne);
}

std::uint64_t LengthModel::survival(const std::vector<std::uint32_t>& curve, int length) const {
  const int b = bin_of(length);
  const std::uint64_t low = edge(b), high = edge(b + 1), at = std::max(length, 1);
  const std::uint64_t drop = curve[b] - curve[b + 1];
  return curve[b] - drop * std::min(at - low, high - low) / (high - low);
}

int LengthModel::draw(int now, std::uint32_t u) const {
  const int first = std::min(now + 1, limit_);
  const std::uint64_t target = survival(scaled_, first) * u >> 32;
  // The last bin whose lower edge is reached with at least the target's chance.
  const auto after = std::upper_bound(scaled_.begin() + bin_of(first) + 1, scaled_.end(), target,
                                      [](std::uint64_t t, std::uint32_t s) { return s <= t; });
  const int b = static_cast<int>(after - scaled_.begin()) - 1;
  if (b >= kBins) return limit_;
  const std::uint64_t low = edge(b), high = edge(b + 1);
  const std::uint64_t drop = scaled_[b] - scaled_[b + 1];
  const std::uint64_t part = drop == 0 ? 0 : (scaled_[b] - target) * (high - low) / drop;
  const auto length = static_cast<std::int64_t>(std::min(low + part, high - 1));
  return static_cast<int>(std::clamp<std::int64_t>(length, first, limit_));
}

std::int64_t LengthModel::expected_ends(int from, int to) const {
  const std::uint64_t now = survival(learned_, from + 1);
  if (now == 0) return kOne;
  return kOne - static_cast<std::int64_t>(survival(learned_, to + 1) * kOne / now);
}

void LengthModel::observe(std::int64_t expected, int ended, int progress) {
  // What was seen an octave ago counts half.
  const std::int64_t keep = kRatioOne - std::min(progress, kRatioOne) / 2;
  seen_expected_ = seen_expected_ * keep / kRatioOne + expected;
  seen_ended_ = seen_ended_ * keep / kRatioOne + ended * kOne;
  rescale();
}

void LengthModel::learn(std::span<const int> lengths, std::span<const int> aborted) {
  for (int b = 0; b < kBins; ++b) {
    at_risk_[b] = faded(at_risk_[b], half_life_);
    ended_[b] = faded(ended_[b], half_life_);
  }
  const auto pass = [&](int length) {
    for (int b = 0; b < bin_of(length); ++b) at_risk_[b] += kOne;
  };
  for (const int length : lengths) {
    pass(length);
    if (length >= limit_) continue;
    at_risk_[bin_of(length)] += kOne;
    ended_[bin_of(length)] += kOne;
  }
  for (const int length : aborted) pass(length);
  seen_expected_ = seen_ended_ = 0;
  fit();
}

std::int64_t LengthModel::weight() const {
  return at_risk_[0] / kOne;
}

std::string LengthModel::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  out.value(std::int64_t{limit_});
  out.value(seen_expected_);
  out.value(seen_ended_);
  for (const std::int64_t weight : at_risk_) out.value(weight);
  for (const std::int64_t weight : ended_) out.value(weight);
  return bytes;
}

void LengthModel::load(std::string_view bytes) {
  ByteReader in(bytes);
  limit_ = static_cast<int>(in.value<std::int64_t>());
  in.value(seen_expected_);
  in.value(seen_ended_);
  for (std::int64_t& weight : at_risk_) in.value(weight);
  for (std::int64_t& weight : ended_) in.value(weight);
  TAPER_VALIDATE(in.done() && limit_ > 0, "the saved length model is damaged");
  fit();
}

}  // namespace taper
