// SPDX-License-Identifier: Apache-2.0
#include "draft/IndexDrafter.hpp"

#include <algorithm>
#include <queue>

#include "engine/Sampler.hpp"

namespace taper {
namespace {

// A draft that may grow by a token.
struct Growth {
  std::int64_t worth = 0;  // probability that the token counts, in 1/kRatioOne^2
  std::size_t ask = 0;

  // The most probable one first, of equals the first.
  bool operator<(const Growth& other) const {
    return worth != other.worth ? worth < other.worth : ask > other.ask;
  }
};

Evidence evidence_of(std::uint64_t gap) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  if (gap > kHalf / 4) return Evidence::kFar;
  if (gap > kHalf / 16) return Evidence::kMiddle;
  return gap > kHalf / 64 ? Evidence::kNear : Evidence::kNearest;
}

}  // namespace

void IndexDrafter::begin(const SamplingOptions& sampling, int threshold) {
  sampling_ = sampling;
  seen_ = {};
  restart(threshold);
}

void IndexDrafter::restart(int threshold) {
  threshold_ = threshold;
  live_.clear();
  sequences_.clear();
  prompts_.clear();
  recent_ = {};
  sources_ = {};
}

void IndexDrafter::learn(std::span<const Completion> responses, const Acceptance& seen) {
  known_.add(seen);
  known_.fade();
  std::set<std::int64_t> prompts;
  for (const Completion& c : responses) {
    const int text =
        past_.add(token_key(sampling_, c.id, 0), c.prompt, prompts.insert(c.id.prompt).second);
    past_.append(text, c.response);
  }
  if (past_.bytes() <= index_bytes_) return;
  // The newest ones that fit into half of the memory stay.
  SuffixIndex old(false);
  std::swap(old, past_);
  int first = old.texts();
  for (std::int64_t tokens = 0; first > 0; --first) {
    tokens += std::ssize(old.text(first - 1).tokens);
    if (tokens * old.bytes() / std::max<std::int64_t>(1, old.tokens()) > index_bytes_ / 2) break;
  }
  std::set<std::uint64_t> hashes;
  for (int i = first; i < old.texts(); ++i) {
    const IndexedText& t = old.text(i);
    const std::span<const std::int32_t> tokens = t.tokens;
    const int text =
        past_.add(t.key, tokens.first(t.prompt_length), hashes.insert(t.prompt_hash).second);
    past_.append(text, tokens.subspan(t.prompt_length));
  }
}

// Counts which guesses of the last question were right, as far as the tokens since then tell.
void IndexDrafter::judge(const Live& live, std::span<const std::int32_t> tokens) {
  for (int i = 0; i < live.drafted; ++i)
    sources_[static_cast<int>(live.asked[i].source)].drafted += 1;
  for (std::size_t i = 0; i < std::min(live.asked.size(), tokens.size()); ++i) {
    const Position& p = live.asked[i];
    for (int g = 0; g < p.count; ++g) {
      const bool right = p.guesses[g].token == tokens[i];
      seen_.count(p.guesses[g].kind, right);
      recent_.count(p.guesses[g].kind, right);
    }
    // Behind a wrong token, the context was another one.
    if (p.best != tokens[i]) return;
    if (static_cast<int>(i) < live.drafted) sources_[static_cast<int>(p.source)].accepted += 1;
  }
}

// The share of right guesses of a kind, in 1/kRatioOne; one half before anything is known.
int IndexDrafter::estimate(const GuessKind& kind) const {
  const auto [right, all] = known_.of(kind);
  const auto [recent_right, recent_all] = recent_.of(kind);
  return static_cast<int>(kRatioOne * (1 + right + recent_right) / (2 + all + recent_all));
}

// Learns the tokens that the sequence has got.
IndexDrafter::Live& IndexDrafter::follow(const Sequence& s) {
  const std::span<const std::int32_t> tokens = s.tokens;
  const auto [at, is_new] = sequences_.try_emplace(s.id);
  Live& live = at->second;
  if (is_new)
    live.text = live_.add(token_key(sampling_, s.id, 0), tokens.first(s.prompt_length),
                          prompts_.insert(s.id.prompt).second);
  const auto news = tokens.subspan(live_.text(live.text).tokens.size());
  judge(live, news);
  live.asked.clear();
  live.drafted = 0;
  live_.append(live.text, news);
  return live;
}

// Of the places that match at least as long as the level says; of equals the newest.
std::int32_t IndexDrafter::most_frequent(int level) {
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
bool IndexDrafter::add_guesses(Position& position, DraftSource source, int level,
                               std::uint64_t number) {
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
    position.guesses[position.count++] = {{source, level, evidence}, token};
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

IndexDrafter::Position IndexDrafter::guess(const IndexedText& text,
                                           std::span<const std::int32_t> context, int position) {
  const CounterRandom random(sampling_.seed);
  const auto number_of = [&](RandomKey key, int at) {
    key.position = static_cast<std::uint64_t>(at);
    return random.bits(key);
  };
  const std::uint64_t number = number_of(text.key, position);
  Position p;
  for (const DraftSource source : {DraftSource::kSelf, DraftSource::kPrompt, DraftSource::kRun}) {
    places_.clear();
    live_.find(source, text, context, places_);
    past_.find(source, text, context, places_);
    numbers_.clear();
    if (sampling_.temperature > 0.0f)
      for (const IndexedPlace& place : places_)
        numbers_.push_back(number_of(place.text->key, place.position));
    for (int level = 0; level < GuessKind::kLevels && add_guesses(p, source, level, number);)
      ++level;
  }
  for (int g = 0; g < p.count; ++g) {
    const int share = estimate(p.guesses[g].kind);
    // Of equals the longest match, of the narrowest source.
    if (share > p.estimate || (share == p.estimate && p.source == p.guesses[g].kind.source)) {
      p.estimate = share;
      p.best = p.guesses[g].token;
      p.source = p.guesses[g].kind.source;
    }
  }
  return p;
}

std::vector<std::vector<std::int32_t>> IndexDrafter::propose(std::span<const DraftAsk> asks,
                                                             int rows) {
  std::vector<std::vector<std::int32_t>> drafts(asks.size()), contexts(asks.size());
  if (threshold_ >= kNothing) return drafts;
  std::vector<Live*> lives;
  for (const DraftAsk& ask : asks) lives.push_back(&follow(*ask.sequence));
  std::priority_queue<Growth> growths;
  // Guesses the next token of a draft, or of the sequence, whose tokens so far count with `worth`.
  const auto look_ahead = [&](std::size_t i, std::int64_t worth) {
    const int length = static_cast<int>(drafts[i].size());
    if (length >= std::min(asks[i].most, draft_length_)) return;
    const Sequence& s = *asks[i].sequence;
    const Position p = guess(live_.text(lives[i]->text), contexts[i], s.length() + length);
    if (p.count == 0) return;
    lives[i]->asked.push_back(p);
    growths.push({worth * p.estimate / kRatioOne, i});
  };
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const std::span<const std::int32_t> tokens = asks[i].sequence->tokens;
    const std::size_t most = SuffixIndex::kLongestMatch;
    const auto last = tokens.last(std::min(tokens.size(), most));
    contexts[i].assign(last.begin(), last.end());
    look_ahead(i, std::int64_t{kRatioOne} * kRatioOne);
  }
  while (!growths.empty() && rows > 0) {
    const auto [worth, i] = growths.top();
    growths.pop();
    if (worth < std::int64_t{threshold_} * kRatioOne) break;
    const std::int32_t token = lives[i]->asked[drafts[i].size()].best;
    drafts[i].push_back(token);
    contexts[i].push_back(token);
    lives[i]->drafted = static_cast<int>(drafts[i].size());
    --rows;
    look_ahead(i, worth);
  }
  return drafts;
}

}  // namespace taper
