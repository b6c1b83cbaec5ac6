// SPDX-License-Identifier: Apache-2.0
#include "draft/TextGuesses.hpp"

#include <algorithm>
#include <utility>

#include "engine/Sampler.hpp"

namespace taper {
namespace {

Evidence evidence_of(std::uint64_t gap) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  if (gap > kHalf / 4) return Evidence::kFar;
  if (gap > kHalf / 16) return Evidence::kMiddle;
  return gap > kHalf / 64 ? Evidence::kNear : Evidence::kNearest;
}

}  // namespace

std::span<const Completion> last_of(std::span<const Completion> responses, std::int64_t tokens) {
  std::size_t first = responses.size();
  for (; first > 0; --first) {
    tokens -= responses[first - 1].length();
    if (tokens < 0) break;
  }
  return responses.subspan(first);
}

void TextGuesses::begin(const SamplingOptions& sampling) {
  sampling_ = sampling;
  forget_sequences();
}

void TextGuesses::forget_sequences() {
  live_.clear();
  texts_.clear();
}

void TextGuesses::follow(const Sequence& s) {
  const std::span<const std::int32_t> tokens = s.tokens;
  const auto [at, is_new] = texts_.try_emplace(s.id);
  if (is_new) at->second = live_.add(token_key(sampling_, s.id, 0), tokens.first(s.prompt_length));
  live_.append(at->second, tokens.subspan(live_.text(at->second).tokens.size()));
}

// Of the places that match at least as long as the level says; of equals the newest.
std::int32_t TextGuesses::most_frequent(int level) {
  votes_.clear();
  for (const IndexedPlace& place : places_) {
    if (place.match < GuessKind::kMatches[level]) continue;
    const auto at = std::find_if(votes_.begin(), votes_.end(),
                                 [&](const auto& vote) { return vote.first == place.token(); });
    if (at == votes_.end())
      votes_.emplace_back(place.token(), 1);
    else
      ++at->second;
  }
  return std::max_element(votes_.begin(), votes_.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// The guesses of one source among the places that match at least as long as the level says. Whether
// there are any.
bool TextGuesses::add_guesses(DraftSource source, int level, std::uint64_t number,
                              std::vector<Guess>& guesses) {
  const IndexedPlace *below = nullptr, *above = nullptr, *newest = nullptr;
  std::uint64_t below_gap = 0, above_gap = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const IndexedPlace& place = places_[i];
    if (place.match < GuessKind::kMatches[level]) continue;
    if (newest == nullptr || place.match > newest->match) newest = &place;
    if (sampling_.temperature == 0.0f || place.position < place.text->prompt_length) continue;
    const std::uint64_t other = numbers_[i];
    if (other <= number && (below == nullptr || number - other < below_gap))
      below = &place, below_gap = number - other;
    if (other >= number && (above == nullptr || other - number < above_gap))
      above = &place, above_gap = other - number;
  }
  if (newest == nullptr) return false;
  const auto add = [&](Evidence evidence, std::int32_t token) {
    guesses.push_back({{source, level, evidence}, token});
  };
  if (below == nullptr && above == nullptr) {
    add(Evidence::kNewest, newest->token());
    return true;
  }
  add(Evidence::kVotes, most_frequent(level));
  if (below != nullptr && above != nullptr && below->token() == above->token()) {
    add(Evidence::kBetween, below->token());
  } else {
    const bool down = above == nullptr || (below != nullptr && below_gap <= above_gap);
    add(evidence_of(down ? below_gap : above_gap), (down ? below : above)->token());
  }
  return true;
}

void TextGuesses::guess(const ResponseId& id, std::span<const std::int32_t> context, int position,
                        std::vector<Guess>& guesses) {
  const IndexedText& text = live_.text(texts_.at(id));
  const CounterRandom random(sampling_.seed);
  const std::uint64_t number = text.number(random, position);
  const IndexedContext before(context);
  for (const DraftSource source : {DraftSource::kRun, DraftSource::kPrompt, DraftSource::kSelf}) {
    places_.clear();
    live_.find(source, text, before, places_);
    past_.find(source, text, before, places_);
    numbers_.clear();
    if (sampling_.temperature > 0.0f)
      for (const IndexedPlace& place : places_)
        numbers_.push_back(place.text->number(random, place.position));
    for (int level = 0; level < GuessKind::kLevels && add_guesses(source, level, number, guesses);)
      ++level;
  }
}

void TextGuesses::learn(std::span<const Completion> responses) {
  forget_sequences();
  for (const Completion& c : last_of(responses, room()))
    past_.append(past_.add(token_key(sampling_, c.id, 0), c.prompt), c.response);
  if (past_.bytes() > index_bytes_) shrink();
}

// The newest texts that fit into half of the memory stay.
void TextGuesses::shrink() {
  SuffixIndex old(DraftSource::kPrompt);
  std::swap(old, past_);
  const double bytes_per_token = static_cast<double>(old.bytes()) /
                                 static_cast<double>(std::max<std::int64_t>(1, old.tokens()));
  int first = old.texts();
  for (std::int64_t tokens = 0; first > 0; --first) {
    tokens += std::ssize(old.text(first - 1).tokens);
    if (static_cast<double>(tokens) * bytes_per_token > static_cast<double>(index_bytes_) / 2)
      break;
  }
  for (int i = first; i < old.texts(); ++i) {
    const IndexedText& text = old.text(i);
    const std::span<const std::int32_t> tokens = text.tokens;
    past_.append(past_.add(text.key, tokens.first(text.prompt_length)),
                 tokens.subspan(text.prompt_length));
  }
}

}  // namespace taper
