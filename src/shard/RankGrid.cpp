// SPDX-License-Identifier: Apache-2.0
#include "shard/RankGrid.hpp"

#include <algorithm>
#include <charconv>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {

DivisorChain::DivisorChain(std::vector<int> degrees) : degrees_(std::move(degrees)) {
  TAPER_VALIDATE(!degrees_.empty() && degrees_.front() == 1, "a divisor chain must start at 1");
  for (std::size_t i = 1; i < degrees_.size(); ++i) {
    TAPER_VALIDATE(degrees_[i] > degrees_[i - 1] && degrees_[i] % degrees_[i - 1] == 0,
                   "divisor chain has " << degrees_[i] << " after " << degrees_[i - 1]
                                        << " (each degree must be a multiple of the one before)");
  }
}

DivisorChain DivisorChain::of(int ranks) {
  TAPER_VALIDATE(ranks > 0, "a divisor chain of " << ranks << " ranks (need at least one)");
  std::vector<int> degrees{1};
  for (int factor = 2, rest = ranks; rest > 1;) {
    if (rest % factor == 0) {
      rest /= factor;
      degrees.push_back(degrees.back() * factor);
    } else {
      ++factor;
    }
  }
  return DivisorChain(std::move(degrees));
}

bool DivisorChain::has(int degree) const {
  return std::find(degrees_.begin(), degrees_.end(), degree) != degrees_.end();
}

int DivisorChain::shard_index(int rank, int degree) const {
  TAPER_VALIDATE(has(degree), "tensor-parallel degree "
                                  << degree << " is not possible on " << ranks()
                                  << " ranks; choose one of " << join(degrees_)
                                  << " (doc/planner.md#which-layouts-are-possible)");
  int index = 0;
  for (std::size_t i = 1; i < degrees_.size() && degrees_[i] <= degree; ++i) {
    const int factor = degrees_[i] / degrees_[i - 1];
    const int digit = rank / degrees_[i - 1] % factor;
    index = index * factor + digit;
  }
  return index;
}

std::vector<int> DivisorChain::group(int degree, int group) const {
  std::vector<int> members(degree);
  for (int local = 0; local < degree; ++local) {
    const int rank = group * degree + local;
    members[shard_index(rank, degree)] = rank;
  }
  return members;
}

std::optional<RankGrid> find_rank_grid(const std::string& text) {
  RankGrid grid;
  const char* end = text.data() + text.size();
  auto [after_tp, tp_error] = std::from_chars(text.data(), end, grid.tp);
  const bool has_x =
      tp_error == std::errc{} && after_tp != end && (*after_tp == 'x' || *after_tp == 'X');
  bool good = has_x;
  if (has_x) {
    auto [after_dp, dp_error] = std::from_chars(after_tp + 1, end, grid.dp);
    good = dp_error == std::errc{} && after_dp == end && grid.tp > 0 && grid.dp > 0;
  }
  return good ? std::optional(grid) : std::nullopt;
}

RankGrid parse_rank_grid(const std::string& text) {
  const auto grid = find_rank_grid(text);
  TAPER_VALIDATE(grid, "layout '" << text << "' (expected: " << kGridForm << ")");
  return *grid;
}

std::string to_string(const RankGrid& grid) {
  return std::to_string(grid.tp) + "x" + std::to_string(grid.dp);
}

}  // namespace taper
