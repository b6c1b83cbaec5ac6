// SPDX-License-Identifier: Apache-2.0
#include "draft/SuffixIndex.hpp"

#include <algorithm>
#include <bit>

namespace taper {
namespace {

// The finalizer of splitmix64: every bit of the result depends on every bit of x.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(std::uint64_t seed, std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens)
    seed = mixed(seed + 0x9e3779b97f4a7c15u + static_cast<std::uint32_t>(token));
  return seed;
}

// Of the tokens before a place that a context has to share with it.
std::uint64_t context_hash(const std::int32_t* end) {
  return hash_of(0, {end - SuffixIndex::kShortestMatch, SuffixIndex::kShortestMatch});
}

std::array<std::uint64_t, kTextSources> scopes_of(const RandomKey& key, std::uint64_t prompt) {
  std::array<std::uint64_t, kTextSources> scopes{};
  scopes[static_cast<int>(DraftSource::kSelf)] =
      mixed(mixed(mixed(mixed(prompt + 1) + key.iteration) + key.ordinal) + key.sample);
  scopes[static_cast<int>(DraftSource::kPrompt)] = prompt;
  return scopes;
}

}  // namespace

IndexedContext::IndexedContext(std::span<const std::int32_t> tokens)
    : tokens(tokens),
      hash(std::ssize(tokens) < SuffixIndex::kShortestMatch
               ? 0
               : context_hash(tokens.data() + tokens.size())) {}

int SuffixIndex::add(const RandomKey& key, std::span<const std::int32_t> prompt) {
  const int number = texts();
  auto text = std::make_unique<IndexedText>();
  text->key = key;
  text->prompt_length = static_cast<int>(prompt.size());
  const std::uint64_t prompt_hash = hash_of(0, prompt);
  text->scopes = scopes_of(key, prompt_hash);
  text->tokens.assign(prompt.begin(), prompt.end());
  const bool is_new = prompts_.insert(prompt_hash).second;
  texts_.push_back(std::move(text));
  if (is_new)
    for (int p = kShortestMatch; p < static_cast<int>(prompt.size()); ++p) arrive(number, p);
  return number;
}

bool SuffixIndex::has_prompt(std::span<const std::int32_t> prompt) const {
  return prompts_.contains(hash_of(0, prompt));
}

void SuffixIndex::append(int text, std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t>& all = texts_[text]->tokens;
  const int first = std::max(kShortestMatch, static_cast<int>(all.size()));
  all.insert(all.end(), tokens.begin(), tokens.end());
  for (int p = first; p < static_cast<int>(all.size()); ++p) arrive(text, p);
}

void SuffixIndex::clear() {
  *this = SuffixIndex(narrowest_);
}

// The places that the chains have room for.
std::size_t SuffixIndex::chain_room() const {
  return arrivals_.empty() ? 0 : std::bit_ceil(std::max<std::size_t>(1024, arrivals_.size()));
}

std::int64_t SuffixIndex::bytes() const {
  const std::size_t chains = kTextSources - static_cast<std::size_t>(narrowest_);
  std::size_t bytes = chain_room() * (sizeof(Arrival) + chains * 2 * sizeof(std::int32_t));
  for (const auto& text : texts_)
    bytes += sizeof *text + text->tokens.size() * sizeof(std::int32_t);
  return static_cast<std::int64_t>(bytes);
}

// Places that have come since the last call; all of them if they are more than the chains have room
// for.
void SuffixIndex::read() {
  const std::size_t all = arrivals_.size(), room = chain_room();
  const bool is_larger = chains()[0].newest.size() < room;
  for (Chain& chain : chains()) {
    if (is_larger) {
      chain.newest.assign(room, -1);
      chain.before.reserve(room);
    }
    chain.before.resize(all);
  }
  if (is_larger) linked_ = 0;
  for (; linked_ < std::ssize(arrivals_); ++linked_) {
    const IndexedText& text = *texts_[arrivals_[linked_].text];
    const std::uint64_t hash = context_hash(text.tokens.data() + arrivals_[linked_].position);
    for (int s = static_cast<int>(narrowest_); s < kTextSources; ++s) {
      Chain& chain = chains_[s];
      std::int32_t& newest = chain.newest[mixed(text.scopes[s] + hash) & (chain.newest.size() - 1)];
      chain.before[linked_] = newest;
      newest = linked_;
    }
  }
}

void SuffixIndex::find(DraftSource source, const IndexedText& of, const IndexedContext& context,
                       std::vector<IndexedPlace>& places) const {
  const Chain& chain = chains_[static_cast<int>(source)];
  if (chain.newest.empty() || std::ssize(context.tokens) < kShortestMatch) return;
  const std::int32_t* end = context.tokens.data() + context.tokens.size();
  const std::uint64_t scope = of.scopes[static_cast<int>(source)];
  std::int32_t a = chain.newest[mixed(scope + context.hash) & (chain.newest.size() - 1)];
  const int most_places = kPlaces[static_cast<std::size_t>(source)];
  for (int looked = 0; a >= 0 && looked < most_places; a = chain.before[a], ++looked) {
    const IndexedText& t = *texts_[arrivals_[a].text];
    const int position = arrivals_[a].position;
    const int most = std::min({kLongestMatch, position, static_cast<int>(context.tokens.size())});
    int match = 0;
    while (match < most && t.tokens[position - 1 - match] == end[-1 - match]) ++match;
    // Another context may have the same hash.
    if (match < kShortestMatch || t.scopes[static_cast<int>(source)] != scope) continue;
    places.push_back({&t, position, match});
  }
}

}  // namespace taper
