// SPDX-License-Identifier: Apache-2.0
#include "engine/StepExchange.hpp"

#include <bit>
#include <vector>

#include "comm/Collectives.hpp"

namespace taper {

void StepExchange::share(std::span<Choice> choices) {
  if (group_.is_null()) return;
  static_assert(sizeof(Choice) == sizeof(ControlWord));
  const std::size_t length = choices.size() + 1;
  std::vector<ControlWord> mine, all(length * group_.size());
  for (const Choice& choice : choices) mine.push_back(std::bit_cast<ControlWord>(choice));
  mine.push_back(word_);
  all_gather(group_, all, mine);
  word_ = all[length - 1];
  has_leader_word_ = true;
  for (std::size_t i = 0; i < choices.size(); ++i)
    for (std::size_t at = i; at < all.size(); at += length) {
      choices[i] = std::bit_cast<Choice>(all[at]);
      if (choices[i].id >= 0) break;
    }
}

ControlWord StepExchange::leader_word() {
  if (!has_leader_word_) share({});
  return word_;
}

}  // namespace taper
