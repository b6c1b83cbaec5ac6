// SPDX-License-Identifier: Apache-2.0
//
// In which order a run visits prompts and examples: pure functions of (seed, position), so a run
// that goes on, in whatever layout, continues where it stood.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taper {

// The order in which pass `pass` visits `count` items: a pure function of its arguments. `stream`
// tells apart what must not have the same order (files of a mixture).
std::vector<int> shuffled(int count, std::uint64_t seed, std::uint64_t pass,
                          std::uint64_t stream = 0);

// Pass after pass over some items, each in an order of its own.
class ShuffledPasses {
 public:
  ShuffledPasses() = default;
  ShuffledPasses(int count, std::uint64_t seed, std::uint64_t stream = 0)
      : count_(count), seed_(seed), stream_(stream) {}

  // The item at a position of the endless stream. There must be some.
  int at(std::uint64_t position) const;
  // The order of one pass; until the next call.
  const std::vector<int>& order(std::uint64_t pass) const;

 private:
  int count_ = 0;
  std::uint64_t seed_ = 0, stream_ = 0;
  // The pass that was asked for last, which is likely to be asked for again.
  mutable std::uint64_t pass_ = 0;
  mutable std::vector<int> order_;
};

// In which order a run visits the examples of its files. With Shuffle::kYes the order is a new one
// in each pass over them, otherwise that of the files.
class ExampleOrder {
 public:
  enum class Shuffle { kNo, kYes };
  // epochs: passes after which the run ends; 0: it never does.
  ExampleOrder(std::int64_t examples, std::uint64_t seed, Shuffle shuffle, int epochs)
      : size_(static_cast<std::uint64_t>(examples)),
        shuffle_(shuffle),
        epochs_(epochs),
        passes_(static_cast<int>(examples), seed) {}

  // The example at a position. There must be some.
  int index_at(std::uint64_t position) const;
  // The position at which the examples of the run end.
  std::uint64_t end() const;
  // Passes that lie before a position.
  double passes(std::uint64_t position) const {
    return static_cast<double>(position) / static_cast<double>(size_);
  }

 private:
  std::uint64_t size_;
  Shuffle shuffle_;
  int epochs_;
  ShuffledPasses passes_;
};

// Which item of several lists comes at a position of an endless stream. Without weights the lists
// are one, and each pass over it visits every item once in an order of its own. With weights each
// block of the stream has exactly their shares (to a ten-thousandth), in an order of its own, and
// each list is passed over by itself.
class PromptMixture {
 public:
  PromptMixture() = default;
  // sizes: items of each list, none empty. weights: none, or one above 0 for each list.
  PromptMixture(const std::vector<int>& sizes, const std::vector<double>& weights,
                std::uint64_t seed);

  // What is wrong with weights for so many lists; empty if nothing is. `option` names them.
  static std::vector<std::string> problems(const std::string& option, std::size_t lists,
                                           const std::vector<double>& weights);

  // Index of the item among those of all lists, one list after the other.
  std::int64_t at(std::uint64_t position) const;
  // Of all lists.
  std::int64_t items() const { return items_; }

 private:
  std::int64_t items_ = 0;
  std::vector<ShuffledPasses> passes_;  // over each list, or over all as one
  // With weights, of each list: the items before it, and its places in a block.
  std::vector<int> first_, shares_;
  std::vector<int> block_;  // the list of each of its places
  ShuffledPasses blocks_;
};

}  // namespace taper
