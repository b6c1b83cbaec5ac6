// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace taper {

// In which order a run visits the examples of its files: a pure function of (seed, position). With
// Shuffle::kYes the order is a new one in each pass over them, otherwise that of the files.
class ExampleOrder {
 public:
  enum class Shuffle { kNo, kYes };
  // epochs: passes after which the run ends; 0: it never does.
  ExampleOrder(std::int64_t examples, std::uint64_t seed, Shuffle shuffle, int epochs)
      : size_(static_cast<std::uint64_t>(examples)),
        seed_(seed),
        shuffle_(shuffle),
        epochs_(epochs) {}

  // The example at a position. There must be some.
  int index_at(std::uint64_t position) const;
  // The position at which the examples of the run end.
  std::uint64_t end() const;
  // Passes that lie before a position.
  double passes(std::uint64_t position) const {
    return static_cast<double>(position) / static_cast<double>(size_);
  }

 private:
  std::uint64_t size_, seed_;
  Shuffle shuffle_;
  int epochs_;
  // The order of the pass that was asked for last.
  mutable std::uint64_t pass_ = 0;
  mutable std::vector<int> order_;
};

}  // namespace taper
