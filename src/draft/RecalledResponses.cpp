// SPDX-License-Identifier: Apache-2.0
#include "draft/RecalledResponses.hpp"

#include <algorithm>
#include <utility>

namespace taper {

void RecalledResponses::add(const ResponseId& id, std::vector<std::int32_t> tokens) {
  responses_[id] = {std::move(tokens), 0};
}

std::span<const std::int32_t> RecalledResponses::after(const Sequence& sequence, int most) {
  const auto at = responses_.find(sequence.id);
  if (at == responses_.end() || most <= 0) return {};
  auto& [tokens, agreed] = at->second;
  const std::size_t length = sequence.tokens.size();
  // A sequence of the same id may also be one of another generation.
  if (length < agreed || length >= tokens.size() ||
      !std::equal(sequence.tokens.begin() + agreed, sequence.tokens.end(),
                  tokens.begin() + agreed)) {
    responses_.erase(at);
    return {};
  }
  agreed = length;
  return std::span<const std::int32_t>(tokens).subspan(
      length, std::min<std::size_t>(static_cast<std::size_t>(most), tokens.size() - length));
}

}  // namespace taper
