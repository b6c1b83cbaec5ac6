// SPDX-License-Identifier: Apache-2.0
#include "rollout/RaceNews.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/Error.hpp"
#include "base/Packing.hpp"
#include "comm/Collectives.hpp"
#include "comm/GatherValues.hpp"

namespace taper {
namespace {

// 24 bits of the prompt, 16 of the sample, 24 of the length, which is not 0.
constexpr int kLengthBits = 24, kSampleBits = 16, kPromptBits = 24;

std::int64_t word_of(const ResponseId& id, int length) {
  TAPER_VALIDATE(
      id.prompt < 1 << kPromptBits && id.sample < 1 << kSampleBits && length < 1 << kLengthBits,
      "response " << id.sample << " of prompt " << id.prompt << " has " << length
                  << " tokens (rounds of tail batching hold 2^24 prompts of 2^16 "
                     "samples of 2^24 tokens); set Rollout/Rounds to plain");
  return static_cast<std::int64_t>(
      static_cast<std::uint64_t>(id.prompt) << (kSampleBits + kLengthBits) |
      static_cast<std::uint64_t>(id.sample) << kLengthBits | static_cast<std::uint64_t>(length));
}

}  // namespace

void RaceNews::ended(const ResponseId& id, int length) {
  own_.push_back(word_of(id, length));
  race_.ended(id, length);
}

void RaceNews::add(std::span<const std::int64_t> words) {
  for (const std::int64_t word : words) {
    const auto bits = static_cast<std::uint64_t>(word);
    const auto field = [&](int shift, int width) {
      return static_cast<int>(bits >> shift & ((std::uint64_t{1} << width) - 1));
    };
    race_.ended({field(kLengthBits + kSampleBits, kPromptBits), field(kLengthBits, kSampleBits)},
                field(0, kLengthBits));
  }
}

void RaceNews::write(std::span<std::int64_t, kWords> words) {
  const std::size_t count = std::min(words.size(), own_.size() - told_);
  std::fill(words.begin(), words.end(), 0);
  std::copy_n(own_.begin() + static_cast<std::ptrdiff_t>(told_), count, words.begin());
  told_ += count;
}

void RaceNews::read(std::span<const std::int64_t, kWords> words) {
  std::copy_if(words.begin(), words.end(), std::back_inserter(heard_),
               [](std::int64_t word) { return word != 0; });
}

void RaceNews::tell(const Group& group) {
  add(unpacked<std::vector<std::int64_t>>(broadcast_string(group, packed(heard_), 0)));
  heard_.clear();
}

void RaceNews::share(const Group& world, bool leads) {
  // Of one's own group one knows; what others have told already is told again, and counts once.
  if (!leads) own_.clear();
  for (const auto& words : all_gather_values(world, own_)) add(words);
  own_.clear();
  heard_.clear();
  told_ = 0;
}

}  // namespace taper
