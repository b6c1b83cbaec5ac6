// SPDX-License-Identifier: Apache-2.0
#include "rl/Batch.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace taper {
namespace {

bool by_order(const Sample& a, const Sample& b) {
  return std::tie(a.ordinal, a.sample) < std::tie(b.ordinal, b.sample);
}

}  // namespace

Batch::Batch(GroupSelection selection)
    : samples(std::move(selection.samples)), groups(selection.counts) {
  const auto rest = std::stable_partition(samples.begin(), samples.end(),
                                          [](const Sample& s) { return !s.dropped; });
  unscored.assign(std::make_move_iterator(rest), std::make_move_iterator(samples.end()));
  samples.erase(rest, samples.end());
}

std::vector<Sample> Batch::take_all() {
  std::vector<Sample> all;
  all.reserve(static_cast<std::size_t>(size()));
  std::merge(std::make_move_iterator(samples.begin()), std::make_move_iterator(samples.end()),
             std::make_move_iterator(unscored.begin()), std::make_move_iterator(unscored.end()),
             std::back_inserter(all), by_order);
  samples.clear();
  unscored.clear();
  return all;
}

}  // namespace taper
