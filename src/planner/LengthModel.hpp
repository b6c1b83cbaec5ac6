// SPDX-License-Identifier: Apache-2.0
//
// How long responses get: the survival curve of "leaves the batch", learned from past generations
// and, within one, from how many left so far. Integers only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taper {

// Bins of response lengths: one each up to 64 tokens, then 64 per octave. Hazards are estimated per
// bin, shrunk towards those of the shorter lengths (so a tail that nobody has seen continues as a
// power law); responses that reached the limit or were aborted count as censored there. The policy
// under training drifts, hence old generations fade with a half-life.
class LengthModel {
 public:
  explicit LengthModel(int half_life);

  // Starts a generation with a limit of response tokens: nothing gets longer.
  void begin(int limit);

  // Within a generation: of sequences whose chances of ending since the last call summed up to
  // `expected` (1/65536, under expected_ends()), so many did end; `progress` is their relative
  // growth in length (in 1/kRatioOne). Hazards of the rest of this generation are scaled
  // accordingly.
  void observe(std::int64_t expected, int ended, int progress);
  // The chance (1/65536) that a response of `from` tokens ends before it has more than `to`, as
  // learned from past generations.
  std::int64_t expected_ends(int from, int to) const;

  // Ends a generation: the lengths of its responses, of which those at the limit are censored, and
  // of the responses that were aborted, all censored where they stood.
  void learn(std::span<const int> lengths, std::span<const int> aborted);

  // The final length (above `now`, at most the limit) of a response that has `now` tokens, for a
  // uniform random u in [0, 2^32).
  int draw(int now, std::uint32_t u) const;

  int limit() const { return limit_; }
  // Past responses that count, fading ones by their weight.
  std::int64_t weight() const;
  // Present scale of the hazards, in 1/kRatioOne.
  int scale() const;

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged.
  std::string save() const;
  void load(std::string_view bytes);

 private:
  std::uint64_t survival(const std::vector<std::uint32_t>& curve, int length) const;
  void fit();
  void rescale();

  int half_life_;
  int limit_ = 1;
  std::vector<std::int64_t> at_risk_, ended_;        // per bin, 1/65536 responses
  std::int64_t seen_expected_ = 0, seen_ended_ = 0;  // of this generation, fading; 1/65536
  std::vector<std::int64_t> hazards_;                // per bin, as learned, 1/65536
  // Chance of a length of at least the lower edge of each bin, 1/2^32: as learned, and scaled by
  // what this generation has shown.
  std::vector<std::uint32_t> learned_, scaled_;
};

}  // namespace taper
