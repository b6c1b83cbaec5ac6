// SPDX-License-Identifier: Apache-2.0
#include "draft/SuffixIndex.hpp"

#include <algorithm>

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

// Which texts a source allows for a text: equal numbers.
std::uint64_t scope_of(DraftSource source, const IndexedText& text) {
  if (source == DraftSource::kRun) return 0;
  if (source == DraftSource::kPrompt) return text.prompt_hash;
  return mixed(mixed(mixed(mixed(text.prompt_hash + 1) + text.key.iteration) + text.key.ordinal) +
               text.key.sample);
}

}  // namespace

int SuffixIndex::add(const RandomKey& key, std::span<const std::int32_t> prompt) {
  const int number = texts();
  auto text = std::make_unique<IndexedText>();
  text->key = key;
  text->prompt_length = static_cast<int>(prompt.size());
  text->prompt_hash = hash_of(0, prompt);
  text->tokens.assign(prompt.begin(), prompt.end());
  const bool is_new = prompts_.insert(text->prompt_hash).second;
  texts_.push_back(std::move(text));
  if (is_new)
    for (int p = kShortestMatch; p < static_cast<int>(prompt.size()); ++p) arrive(number, p);
  return number;
}

bool SuffixIndex::has_prompt(std::span<const std::int32_t> prompt) const {
  return prompts_.contains(hash_of(0, prompt));
}

void SuffixIndex::append(int text, std::span<const std::int32_t> tokens) {
  IndexedText& t = *texts_[text];
  for (const std::int32_t token : tokens) {
    t.tokens.push_back(token);
    const int position = static_cast<int>(t.tokens.size()) - 1;
    if (position >= kShortestMatch) arrive(text, position);
  }
}

void SuffixIndex::clear() {
  *this = SuffixIndex(narrowest_);
}

std::int64_t SuffixIndex::bytes() const {
  std::int64_t bytes = static_cast<std::int64_t>(arrivals_.capacity() * sizeof(Arrival));
  for (const Chain& chain : chains_)
    bytes += static_cast<std::int64_t>((chain.newest.capacity() + chain.before.capacity()) *
                                       sizeof(std::int32_t));
  for (const auto& text : texts_)
    bytes +=
        static_cast<std::int64_t>(sizeof *text + text->tokens.capacity() * sizeof(std::int32_t));
  return bytes;
}

std::uint64_t SuffixIndex::context_hash(DraftSource source, const IndexedText& text,
                                        const std::int32_t* end) const {
  return hash_of(scope_of(source, text), {end - kShortestMatch, kShortestMatch});
}

void SuffixIndex::link(Chain& chain, std::uint64_t hash, std::int32_t arrival) {
  std::int32_t& newest = chain.newest[hash & (chain.newest.size() - 1)];
  chain.before[arrival] = newest;
  newest = arrival;
}

// Twice the room, and all places again.
void SuffixIndex::grow(DraftSource source) {
  Chain& chain = chains_[static_cast<int>(source)];
  chain.newest.assign(std::max<std::size_t>(1024, 2 * chain.newest.size()), -1);
  for (std::int32_t a = 0; a < std::ssize(chain.before); ++a) {
    const IndexedText& t = *texts_[arrivals_[a].text];
    link(chain, context_hash(source, t, t.tokens.data() + arrivals_[a].position), a);
  }
}

void SuffixIndex::arrive(int text, int position) {
  const auto arrival = static_cast<std::int32_t>(arrivals_.size());
  arrivals_.push_back({text, position});
  const IndexedText& t = *texts_[text];
  for (const DraftSource source : {DraftSource::kSelf, DraftSource::kPrompt, DraftSource::kRun}) {
    if (source < narrowest_) continue;
    Chain& chain = chains_[static_cast<int>(source)];
    if (chain.before.size() >= chain.newest.size()) grow(source);
    chain.before.push_back(-1);
    link(chain, context_hash(source, t, t.tokens.data() + position), arrival);
  }
}

void SuffixIndex::find(DraftSource source, const IndexedText& of,
                       std::span<const std::int32_t> context,
                       std::vector<IndexedPlace>& places) const {
  const Chain& chain = chains_[static_cast<int>(source)];
  if (chain.newest.empty() || std::ssize(context) < kShortestMatch) return;
  const std::int32_t* end = context.data() + context.size();
  const std::uint64_t scope = scope_of(source, of);
  std::int32_t a = chain.newest[context_hash(source, of, end) & (chain.newest.size() - 1)];
  const int most_places = kPlaces[static_cast<std::size_t>(source)];
  for (int looked = 0; a >= 0 && looked < most_places; a = chain.before[a], ++looked) {
    const IndexedText& t = *texts_[arrivals_[a].text];
    const int position = arrivals_[a].position;
    const int most = std::min({kLongestMatch, position, static_cast<int>(context.size())});
    int match = 0;
    while (match < most && t.tokens[position - 1 - match] == end[-1 - match]) ++match;
    // Another context may have the same hash.
    if (match < kShortestMatch || scope_of(source, t) != scope) continue;
    places.push_back({&t, position, match});
  }
}

}  // namespace taper
