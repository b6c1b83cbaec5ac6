// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: a value is a pure function of its key, never of a rank, a batch
// slot or a call order. Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace taper {

// What a stream of numbers is for; training and evaluation must never share one.
enum class RandomPurpose : std::uint8_t {
  kSampling = 1,    // tokens of training rollouts
  kEvaluation = 2,  // tokens of evaluations
  kData = 3,        // shuffling, mixing
  kTask = 4,        // task generators
  kInit = 5,        // weights
  kScenario = 6,    // futures of the predictor
  kTest = 7,        // tests, benchmarks, and lengths of a described law
  kScoreInit = 8,   // weights of a scalar head that starts on a language model
};

// The counter of one number. Field widths (bits) fill Philox's 128-bit counter; bits() refuses what
// does not fit.
struct RandomKey {
  RandomPurpose purpose = RandomPurpose::kTest;  // 8
  std::uint64_t iteration = 0;                   // 24
  std::uint64_t ordinal = 0;   // 32: request ordinal (incl. refills), item index, ...
  std::uint64_t sample = 0;    // 16
  std::uint64_t position = 0;  // 24
  std::uint64_t item = 0;      // 24: token id or any last index
};

// Random numbers of one seed.
class CounterRandom {
 public:
  explicit CounterRandom(std::uint64_t seed) : seed_(seed) {}

  // 64 uniform bits for the key. Throws Error if a field overflows its width.
  std::uint64_t bits(const RandomKey& key) const;
  // Uniform in the open interval (0, 1) with 53 bits.
  double uniform(const RandomKey& key) const;
  // Uniform integer in [0, bound), bound > 0; the bias is below bound / 2^64.
  std::uint64_t below(const RandomKey& key, std::uint64_t bound) const;
  // Standard normal by Box-Muller.
  double normal(const RandomKey& key) const;

 private:
  std::uint64_t seed_;
};

// The raw generator, for tests against the published vectors.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// Sequential numbers for code that walks (task generators, shuffles): the position of the key
// counts up.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint64_t iteration,
               std::uint64_t ordinal, std::uint64_t sample = 0)
      : random_(seed), key_{purpose, iteration, ordinal, sample, 0, 0} {}

  double uniform() { return random_.uniform(next()); }
  std::uint64_t below(std::uint64_t bound) { return random_.below(next(), bound); }
  // Uniform integer in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }

 private:
  RandomKey next() {
    const RandomKey key = key_;
    ++key_.position;
    return key;
  }

  CounterRandom random_;
  RandomKey key_;
};

}  // namespace taper
