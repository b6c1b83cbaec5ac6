// SPDX-License-Identifier: Apache-2.0
#include "rollout/GatheredResponses.hpp"

#include <algorithm>

#include "base/Bytes.hpp"
#include "comm/Collectives.hpp"
#include "draft/TextGuesses.hpp"

namespace taper {
namespace {

std::string packed(std::span<const Completion> completions) {
  std::string bytes;
  ByteWriter out(bytes);
  out.value(std::ssize(completions));
  for (const Completion& c : completions) {
    out.value(c.id);
    out.list(c.prompt);
    out.list(c.response);
  }
  return bytes;
}

void unpack(std::string_view bytes, std::vector<Completion>& completions) {
  ByteReader in(bytes);
  for (auto count = in.value<std::ptrdiff_t>(); count > 0; --count) {
    Completion& c = completions.emplace_back();
    in.value(c.id);
    in.list(c.prompt);
    in.list(c.response);
  }
}

}  // namespace

std::int64_t tokens_of(std::span<const Completion> responses) {
  std::int64_t tokens = 0;
  for (const Completion& c : responses) tokens += c.length();
  return tokens;
}

std::vector<Completion> gather_responses(const Group& group, std::span<const Completion> mine,
                                         const GatheredTokens& tokens) {
  std::vector<Completion> all;
  if (tokens.room <= 0) return all;
  if (tokens.all > tokens.room)
    mine = last_of(mine, static_cast<std::int64_t>(static_cast<double>(tokens_of(mine)) *
                                                   static_cast<double>(tokens.room) /
                                                   static_cast<double>(tokens.all)));
  for (const std::string& bytes : all_gather_string(group, packed(mine))) unpack(bytes, all);
  std::sort(all.begin(), all.end(),
            [](const Completion& a, const Completion& b) { return a.id < b.id; });
  return all;
}

}  // namespace taper
