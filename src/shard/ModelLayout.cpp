// SPDX-License-Identifier: Apache-2.0
#include "shard/ModelLayout.hpp"

#include <charconv>
#include <sstream>

#include "base/Text.hpp"

namespace taper {
namespace {

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole && number >= 0 ? std::optional(number) : std::nullopt;
}

std::optional<RankBlock> find_block(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = number_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return RankBlock{*first, *last - *first + 1};
}

}  // namespace

std::string to_string(const RankBlock& ranks) {
  const std::string first = std::to_string(ranks.first);
  return ranks.count == 1 ? first : first + "-" + std::to_string(ranks.end() - 1);
}

std::string to_string(const ModelLayout& layout) {
  return to_string(layout.ranks()) + ":" + to_string(layout.grid);
}

std::optional<ModelRanks> find_model_ranks(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto block = find_block(std::string_view(text).substr(0, colon));
  if (!block) return std::nullopt;
  if (colon == std::string::npos) return ModelRanks{*block, std::nullopt};
  const auto grid = find_rank_grid(text.substr(colon + 1));
  if (!grid || grid->ranks() != block->count) return std::nullopt;
  return ModelRanks{*block, grid};
}

std::string block_problem(const RankBlock& ranks, const DivisorChain& chain) {
  std::ostringstream problem;
  if (ranks.end() > chain.ranks()) {
    problem << "(there are " << count_text(chain.ranks(), "rank")
            << ", counted from 0); name ranks below " << chain.ranks();
  } else if (!chain.has(ranks.count)) {
    problem << "(" << count_text(ranks.count, "rank") << " of " << chain.ranks()
            << "); choose a block of one of " << join(chain.degrees()) << " ranks";
  } else if (ranks.first % ranks.count != 0) {
    const int before = ranks.first / ranks.count * ranks.count;
    problem << "(a block of " << ranks.count << " ranks starts at a multiple of " << ranks.count
            << "); write " << to_string(RankBlock{before, ranks.count}) << " or "
            << to_string(RankBlock{before + ranks.count, ranks.count});
  }
  return problem.str();
}

}  // namespace taper
