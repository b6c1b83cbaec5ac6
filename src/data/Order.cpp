// SPDX-License-Identifier: Apache-2.0
#include "data/Order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "base/Text.hpp"

namespace taper {

std::vector<int> shuffled(int count, std::uint64_t seed, std::uint64_t pass, std::uint64_t stream) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, RandomPurpose::kData, stream, pass);
  for (int i = count - 1; i > 0; --i)
    std::swap(order[i], order[random.below(static_cast<std::uint64_t>(i) + 1)]);
  return order;
}

int ShuffledPasses::at(std::uint64_t position) const {
  const auto count = static_cast<std::uint64_t>(count_);
  return order(position / count)[position % count];
}

const std::vector<int>& ShuffledPasses::order(std::uint64_t pass) const {
  if (order_.empty() || pass_ != pass) {
    order_ = shuffled(count_, seed_, pass, stream_);
    pass_ = pass;
  }
  return order_;
}

int ExampleOrder::index_at(std::uint64_t position) const {
  return shuffle_ == Shuffle::kNo ? static_cast<int>(position % size_) : passes_.at(position);
}

std::uint64_t ExampleOrder::end() const {
  return epochs_ > 0 && size_ > 0 ? static_cast<std::uint64_t>(epochs_) * size_
                                  : std::numeric_limits<std::uint64_t>::max();
}

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

PromptMixture::PromptMixture(const std::vector<int>& sizes, const std::vector<double>& weights,
                             std::uint64_t seed) {
  TAPER_EXPECT(problems("", sizes.size(), weights).empty() && sizes.size() < kBlocks);
  for (const int size : sizes) {
    TAPER_EXPECT(size > 0);
    first_.push_back(static_cast<int>(items_));
    items_ += size;
  }
  if (weights.empty()) {
    passes_.emplace_back(static_cast<int>(items_), seed);
    return;
  }
  shares_ = shares_of(weights);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    passes_.emplace_back(sizes[i], seed, i);
    block_.insert(block_.end(), static_cast<std::size_t>(shares_[i]), static_cast<int>(i));
  }
  blocks_ = ShuffledPasses(static_cast<int>(block_.size()), seed, kBlocks);
}

std::int64_t PromptMixture::at(std::uint64_t position) const {
  if (block_.empty()) return passes_[0].at(position);
  const std::uint64_t length = block_.size(), block = position / length;
  const auto& places = blocks_.order(block);
  const auto place = static_cast<std::ptrdiff_t>(position % length);
  const int list = block_[places[place]];
  const auto before = std::count_if(places.begin(), places.begin() + place,
                                    [&](int p) { return block_[p] == list; });
  const std::uint64_t turn =
      block * static_cast<std::uint64_t>(shares_[list]) + static_cast<std::uint64_t>(before);
  return first_[list] + passes_[list].at(turn);
}

}  // namespace taper
