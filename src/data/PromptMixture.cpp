// SPDX-License-Identifier: Apache-2.0
#include "data/PromptMixture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "data/Shuffle.hpp"

namespace taper {
namespace {

constexpr int kFinest = 10000;  // places of a block at most

// Places of each list in the smallest block that has the shares of whole-numbered weights, or else
// in one of kFinest places, by largest remainders.
std::vector<int> shares_of(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const bool whole = sum <= kFinest && std::all_of(weights.begin(), weights.end(),
                                                   [](double w) { return w == std::floor(w); });
  std::vector<int> shares(weights.size());
  if (whole) {
    int divisor = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
      divisor = std::gcd(divisor, shares[i] = static_cast<int>(weights[i]));
    for (int& share : shares) share /= divisor;
    return shares;
  }
  std::vector<std::pair<double, std::size_t>> remainders;
  int given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double exact = weights[i] / sum * kFinest;
    given += shares[i] = static_cast<int>(std::floor(exact));
    remainders.emplace_back(shares[i] - exact, i);  // the largest first
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t k = 0; given < kFinest; ++k, ++given) ++shares[remainders[k].second];
  return shares;
}

// Stream of the random numbers of the blocks; those of a list are its number.
constexpr std::uint64_t kBlocks = 4095;

}  // namespace

std::vector<std::string> PromptMixture::problems(const std::string& option, std::size_t lists,
                                                 const std::vector<double>& weights) {
  if (weights.empty()) return {};
  if (weights.size() != lists)
    return {option + " has " + count_text(std::ssize(weights), "number") + " for " +
            count_text(static_cast<std::int64_t>(lists), "file") +
            " (one for each is expected, in their order)"};
  for (const double weight : weights)
    if (!(weight > 0.0) || !std::isfinite(weight))
      return {option +
              format_text(" has %g (shares are above 0); leave the file out instead", weight)};
  const std::vector<int> shares = shares_of(weights);
  if (*std::min_element(shares.begin(), shares.end()) == 0)
    return {option +
            " has a number below a ten-thousandth of their sum (too rare to be met); "
            "raise it or leave the file out"};
  return {};
}

PromptMixture::PromptMixture(std::vector<int> sizes, const std::vector<double>& weights,
                             std::uint64_t seed)
    : seed_(seed), sizes_(std::move(sizes)) {
  TAPER_EXPECT(problems("", sizes_.size(), weights).empty() && sizes_.size() < kBlocks);
  for (const int size : sizes_) {
    TAPER_EXPECT(size > 0);
    first_.push_back(static_cast<int>(items_));
    items_ += size;
  }
  orders_.resize(std::max<std::size_t>(1, sizes_.size()));
  if (weights.empty()) return;
  shares_ = shares_of(weights);
  for (std::size_t i = 0; i < shares_.size(); ++i)
    block_.insert(block_.end(), static_cast<std::size_t>(shares_[i]), static_cast<int>(i));
}

const std::vector<int>& PromptMixture::order(Order& cached, int count, std::uint64_t pass,
                                             std::uint64_t stream) const {
  if (cached.items.empty() || cached.pass != pass)
    cached = {pass, shuffled(count, seed_, pass, stream)};
  return cached.items;
}

std::int64_t PromptMixture::at(std::uint64_t position) const {
  if (block_.empty()) {
    const auto size = static_cast<std::uint64_t>(items_);
    return order(orders_[0], static_cast<int>(size), position / size, 0)[position % size];
  }
  const std::uint64_t length = block_.size(), block = position / length;
  const auto& places = order(block_order_, static_cast<int>(length), block, kBlocks);
  const auto place = static_cast<std::ptrdiff_t>(position % length);
  const int list = block_[places[place]];
  const auto before = std::count_if(places.begin(), places.begin() + place,
                                    [&](int p) { return block_[p] == list; });
  const std::uint64_t turn =
      block * static_cast<std::uint64_t>(shares_[list]) + static_cast<std::uint64_t>(before);
  const auto size = static_cast<std::uint64_t>(sizes_[list]);
  return first_[list] + order(orders_[list], static_cast<int>(size), turn / size,
                              static_cast<std::uint64_t>(list))[turn % size];
}

}  // namespace taper
