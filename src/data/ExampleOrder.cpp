// SPDX-License-Identifier: Apache-2.0
#include "data/ExampleOrder.hpp"

#include <limits>

#include "data/Shuffle.hpp"

namespace taper {

int ExampleOrder::index_at(std::uint64_t position) const {
  const std::uint64_t pass = position / size_;
  if (shuffle_ == Shuffle::kNo) return static_cast<int>(position % size_);
  if (order_.empty() || pass_ != pass) {
    order_ = shuffled(static_cast<int>(size_), seed_, pass);
    pass_ = pass;
  }
  return order_[position % size_];
}

std::uint64_t ExampleOrder::end() const {
  return epochs_ > 0 && size_ > 0 ? static_cast<std::uint64_t>(epochs_) * size_
                                  : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace taper
