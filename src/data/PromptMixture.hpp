// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taper {

// Which item of several lists comes at a position of an endless stream: a pure function of (seed,
// position). Without weights the lists are one, and each pass over it visits every item once in an
// order of its own. With weights each block of the stream has exactly their shares (to a
// ten-thousandth), in an order of its own, and each list is passed over by itself.
class PromptMixture {
 public:
  PromptMixture() = default;
  // sizes: items of each list, none empty. weights: none, or one above 0 for each list.
  PromptMixture(std::vector<int> sizes, const std::vector<double>& weights, std::uint64_t seed);

  // What is wrong with weights for so many lists; empty if nothing is. `option` names them.
  static std::vector<std::string> problems(const std::string& option, std::size_t lists,
                                           const std::vector<double>& weights);

  // Index of the item among those of all lists, one list behind the other.
  std::int64_t at(std::uint64_t position) const;
  // Of all lists.
  std::int64_t items() const { return items_; }

 private:
  // An order that is likely to be asked for again.
  struct Order {
    std::uint64_t pass = 0;
    std::vector<int> items;
  };
  const std::vector<int>& order(Order& cached, int count, std::uint64_t pass,
                                std::uint64_t stream) const;

  std::uint64_t seed_ = 0;
  std::int64_t items_ = 0;
  std::vector<int> sizes_, first_;  // of each list: items, and those before it
  std::vector<int> block_;          // with weights: the list of each place of a block
  std::vector<int> shares_;         // of each list: its places in a block
  mutable Order block_order_;
  mutable std::vector<Order> orders_;  // of each list, or of all as one
};

}  // namespace taper
