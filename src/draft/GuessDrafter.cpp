// SPDX-License-Identifier: Apache-2.0
#include "draft/GuessDrafter.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/Timer.hpp"
#include "comm/Collectives.hpp"

namespace taper {

void DraftCounts::add(const DraftCounts& other) {
  acceptance.add(other.acceptance);
  for (int i = 0; i < kDraftSources; ++i) {
    sources[i].drafted += other.sources[i].drafted;
    sources[i].accepted += other.sources[i].accepted;
  }
}

void GuessDrafter::begin(const SamplingOptions& sampling, const Group& group,
                         const DraftLimits& limits, WaitsFor waits_for,
                         std::span<const std::int32_t> end_ids) {
  sampling_ = sampling;
  known_ = &all_known_[{sampling.purpose, sampling.temperature == 0.0f}];
  waits_for_ = waits_for;
  end_ids_.assign(end_ids.begin(), end_ids.end());
  mine_ = recent_ = {};
  texts_.begin(sampling);
  restart(group, limits);
}

void GuessDrafter::restart(const Group& group, const DraftLimits& limits) {
  if (speaks()) mine_.add(recent_);
  recent_ = {};
  group_ = &group;
  is_spread_ = model_ != nullptr && model_->is_local() && !group.is_null();
  limits_ = limits;
  texts_.forget_sequences();
  end_order_.restart();
  asked_.clear();
  unobserved_ = 0;
  owners_.clear();
}

DraftCounts GuessDrafter::finish() {
  if (speaks()) mine_.add(recent_);
  recent_ = {};
  return mine_;
}

void GuessDrafter::learn(std::span<const Completion> responses, const DraftCounts& counts,
                         const Endings& endings) {
  known_->acceptance.add(counts.acceptance);
  known_->acceptance.fade();
  known_->endings.fade();
  known_->endings.add(endings);
  texts_.learn(responses);
}

// What all ranks of a group count alike, one of them says.
bool GuessDrafter::speaks() const {
  return is_spread_ || group_ == nullptr || group_->rank() == 0;
}

void GuessDrafter::count_reach(const ResponseId& id, int drafted, int accepted) {
  if (is_recalling_) return;
  std::vector<double> more;
  if (explores_) {
    if (limits_.threshold >= DraftLimits::kNothing) return;
    more = beyond(estimates_of(id), drafted, accepted);
  }
  known_->reaches[bucket_].add(drafted, accepted, more);
}

// Of the positions that were asked about, by this rank or by another one.
std::vector<int> GuessDrafter::estimates_of(const ResponseId& id) const {
  if (const auto told = told_.find(id); told != told_.end()) return told->second;
  std::vector<int> estimates;
  if (const auto asked = asked_.find(id); asked != asked_.end())
    for (const Position& p : asked->second) estimates.push_back(p.estimate);
  return estimates;
}

// Behind a wrong guess nothing would have been right.
std::vector<double> GuessDrafter::beyond(std::span<const int> estimates, int drafted,
                                         int accepted) {
  std::vector<double> list;
  double all = 1, right = accepted == drafted ? 1 : 0;
  for (int i = 0; i < std::ssize(estimates); ++i) {
    const double estimate = static_cast<double>(estimates[i]) / kRatioOne;
    all *= estimate;
    if (all < kExplored) break;
    if (i >= drafted) list.push_back(right *= estimate);
  }
  return list;
}

// Counts which guesses were right, as far as the tokens tell.
void GuessDrafter::observe(const Sequence& sequence, int drafted,
                           std::span<const std::int32_t> tokens) {
  if (unobserved_ == 0) return;  // in a step in which nobody was asked
  --unobserved_;
  const int accepted = static_cast<int>(tokens.size()) - 1;
  count_reach(sequence.id, drafted, accepted);
  if (!is_recalling_ && limits_.threshold < DraftLimits::kNothing) {
    for (int i = 0; i < accepted; ++i)
      accepted_value_ += value_of(end_order_.worth(sequence.id, i)).of_token;
    end_order_.observe(sequence.id, accepted + 1);
  }
  const auto asked = asked_.find(sequence.id);
  if (asked == asked_.end()) return;
  const std::vector<Position>& positions = asked->second;
  for (int i = 0; i < drafted; ++i)
    recent_.sources[static_cast<int>(positions[i].choice().kind.source)].drafted += 1;
  for (std::size_t i = 0; i < std::min(positions.size(), tokens.size()); ++i) {
    for (const Guess& g : positions[i].guesses)
      recent_.acceptance.count(g.kind, g.token == tokens[i]);
    const Guess& choice = positions[i].choice();
    // Behind a wrong token, the context was another one.
    if (choice.token != tokens[i]) break;
    // The last token of a step is drawn, whatever was guessed.
    if (i + 1 < tokens.size()) recent_.sources[static_cast<int>(choice.kind.source)].accepted += 1;
  }
  asked_.erase(asked);
}

// Of a kind of guesses, or of all of a source.
template <class What>
int GuessDrafter::estimate(const What& what) {
  const RightOf before = known_->acceptance.of(what), recent = recent_.acceptance.of(what);
  return taper::estimate({before.right + recent.right, before.all + recent.all});
}

// Of equals the last one.
void GuessDrafter::choose(Position& position) {
  for (std::size_t g = 0; g < position.guesses.size(); ++g) {
    const int share = estimate(position.guesses[g].kind);
    if (share < position.estimate) continue;
    position.best = g;
    position.estimate = share;
  }
}

// The guesses for the next position of each draft.
std::vector<GuessDrafter::Position> GuessDrafter::look_ahead(std::span<const DraftAsk> asks,
                                                             const std::vector<Growth>& growing) {
  std::vector<Position> positions(growing.size());
  for (std::size_t i = 0; i < growing.size(); ++i) {
    const std::vector<std::int32_t>& draft = growing[i].draft;
    const Sequence& s = *asks[growing[i].ask].sequence;
    // The last tokens are enough, and sequences are long.
    const std::span<const std::int32_t> own = s.tokens;
    const auto end = own.last(std::min(own.size(), std::size_t{SuffixIndex::kLongestMatch}));
    std::vector<std::int32_t> context(end.begin(), end.end());
    context.insert(context.end(), draft.begin(), draft.end());
    const auto position = static_cast<int>(own.size() + draft.size());
    texts_.guess(s.id, context, position, positions[i].guesses);
    choose(positions[i]);
  }
  if (model_ != nullptr) add_model_guesses(asks, growing, positions);
  return positions;
}

// Whether a guess of the model that it is sure of is right often enough to be worth a row.
bool GuessDrafter::could_count(const std::vector<Growth>& growing) {
  int least = kRatioOne;
  for (const Growth& g : growing) least = std::min(least, g.value.least);
  GuessKind kind{DraftSource::kModel, 0, Evidence::kProbability};
  for (; kind.level < GuessKind::kLevels; ++kind.level)
    if (estimate(kind) >= least) return true;
  return false;
}

// A round of the model, for those drafts in which it is more often right than texts are. What it is
// expected to add has to be worth its time, unless the step would take that anyway; ranks that
// share the sequences out have theirs at the same time.
void GuessDrafter::add_model_guesses(std::span<const DraftAsk> asks,
                                     const std::vector<Growth>& growing,
                                     std::vector<Position>& positions) {
  const int share = estimate(DraftSource::kModel);
  std::vector<DraftContext> contexts;
  std::vector<std::size_t> places;
  double gain = 0;
  for (std::size_t i = 0; i < growing.size(); ++i) {
    const int more = share - positions[i].estimate;
    if (more <= 0 || !growing[i].may_pay) continue;
    const std::int64_t added = growing[i].probability / kRatioOne * more;  // in 1/kRatioOne^2
    gain += growing[i].value.of_token * static_cast<double>(added);
    contexts.push_back({asks[growing[i].ask].sequence, growing[i].draft});
    places.push_back(i);
  }
  if (is_spread_) gain *= of_mine_;
  const bool is_free = model_->is_part_of_step() && could_count(growing) &&
                       std::all_of(contexts.begin(), contexts.end(),
                                   [](const DraftContext& c) { return c.draft.empty(); });
  const double price =
      static_cast<double>(limits_.round) * kRatioOne * static_cast<double>(asks.size());
  const bool pays = limits_.round < DraftLimits::kNoRound && gain >= price;
  if (contexts.empty() || !(is_free || pays)) return;
  const Timer timer;
  const std::vector<DrawnToken> drawn = model_->draw(contexts, sampling_);
  const auto ns = timer.nanoseconds();
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (drawn[i].id < 0) continue;
    Position& p = positions[places[i]];
    p.guesses.push_back({GuessKind::of_model(drawn[i].log_prob), drawn[i].id});
    choose(p);
  }
  if (is_free) {
    look_ns_ -= ns;
    return;
  }
  if (model_->rows_read() > 2 * std::ssize(contexts)) {
    model_rounds_.reading_ns += ns;
  } else {
    ++model_rounds_.rounds;
    model_rounds_.ns += ns;
  }
}

std::vector<std::vector<std::int32_t>> GuessDrafter::propose(std::span<const DraftAsk> asks,
                                                             const DraftRoom& room) {
  asked_.clear();
  told_.clear();
  accepted_value_ = expected_value_ = 0;
  model_rounds_ = {};
  look_ns_ = reading_ns_ = 0;
  unobserved_ = std::ssize(asks);
  bucket_ = static_cast<std::size_t>(length_bucket(unobserved_));
  DraftRoom left = room;
  Drafts drafts = recall_drafts(asks, left.rows);
  if (limits_.threshold >= DraftLimits::kNothing) return drafts;
  const Timer reading;
  texts_.read_past();
  reading_ns_ = reading.nanoseconds();
  const Timer timer;
  Drafts guessed = guess_drafts(asks, drafts, left);
  look_ns_ = std::max<std::int64_t>(0, look_ns_ + timer.nanoseconds() - model_rounds_.all_ns());
  for (std::size_t i = 0; i < drafts.size(); ++i)
    if (drafts[i].empty()) drafts[i] = std::move(guessed[i]);
  return drafts;
}

// Of each sequence that is known, as much as there is room for: such tokens are read as fast as a
// prompt. Every rank knows them; one of them counts.
GuessDrafter::Drafts GuessDrafter::recall_drafts(std::span<const DraftAsk> asks, int& rows) {
  Drafts drafts(asks.size());
  is_recalling_ = false;
  if (recalled_.empty() || asks.empty()) return drafts;
  const int share = std::max(draft_length_, rows / static_cast<int>(asks.size()));
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const Sequence& s = *asks[i].sequence;
    const auto tokens = recalled_.after(s, std::min({asks[i].most, share, rows}));
    if (tokens.empty()) continue;
    drafts[i].assign(tokens.begin(), tokens.end());
    rows -= static_cast<int>(tokens.size());
    is_recalling_ = true;
    if (is_spread_ && group_->rank() != 0) continue;
    for (const std::int32_t token : tokens)
      asked_[s.id].push_back(
          {{{{DraftSource::kJournal, 0, Evidence::kNewest}, token}}, 0, kRatioOne});
  }
  return drafts;
}

// With t the threshold, a row is t of the mean token's price, and what all rows share the rest: a
// token saves its own row in any case, of the rest what the sequence is worth. (Rounding of worths
// must not raise the threshold.)
GuessDrafter::Value GuessDrafter::value_of(double worth) const {
  constexpr double kRounding = 1e-6;
  const double t = static_cast<double>(limits_.threshold) / kRatioOne;
  const double value = t + worth * (1 - t);
  return {value,
          value > 0 ? static_cast<int>(std::ceil(limits_.threshold / value - kRounding)) : 0};
}

// Of those without a recalled draft that may have one, this rank's.
std::vector<GuessDrafter::Growth> GuessDrafter::first_growths(std::span<const DraftAsk> asks,
                                                              const Drafts& recalled, Queue queue) {
  // In a race it is not known which sequences will be kept.
  if (waits_for_ == WaitsFor::kKept) queue = Queue::kWaiting;
  end_order_.begin_step(asks, queue, known_->endings);
  const auto mine =
      is_spread_ ? owners_.deal(asks, group_->size(), group_->rank()) : std::vector<std::size_t>();
  std::vector<Growth> growing;
  int all = 0;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (asks[i].most <= 0 || !recalled[i].empty()) continue;
    const Value value = value_of(end_order_.worth(asks[i].sequence->id));
    if (value.least >= DraftLimits::kNothing) continue;
    ++all;
    if (!is_spread_ || std::binary_search(mine.begin(), mine.end(), i))
      growing.push_back({i, {}, std::int64_t{kRatioOne} * kRatioOne, value});
  }
  of_mine_ = growing.empty() ? 1 : static_cast<double>(all) / static_cast<double>(growing.size());
  return growing;
}

bool GuessDrafter::goes_on(const Growth& growth) const {
  constexpr double kLeast = kExplored * kRatioOne * kRatioOne;
  return growth.may_pay || (explores_ && static_cast<double>(growth.probability) >= kLeast);
}

// The last tokens that are expected to give most if there are too few rows, of equals the first.
void GuessDrafter::deal_rows(std::span<const DraftAsk> asks, std::vector<Growth>& grown, int& rows,
                             Drafts& drafts) {
  const auto gain = [](const Growth& g) {
    return g.may_pay ? g.value.of_token * static_cast<double>(g.probability) : 0;
  };
  std::stable_sort(grown.begin(), grown.end(),
                   [&](const Growth& a, const Growth& b) { return gain(a) > gain(b); });
  for (Growth& g : grown) {
    g.may_pay = g.may_pay && rows > 0;
    if (!g.may_pay) continue;
    --rows;
    expected_value_ += gain(g) / (static_cast<double>(kRatioOne) * kRatioOne);
    drafts[g.ask] = g.draft;
    const auto length = static_cast<int>(std::ssize(g.draft));
    g.value = value_of(end_order_.worth(asks[g.ask].sequence->id, length));
    g.may_pay = g.value.least < DraftLimits::kNothing;
  }
}

// For those without a recalled draft.
GuessDrafter::Drafts GuessDrafter::guess_drafts(std::span<const DraftAsk> asks,
                                                const Drafts& recalled, const DraftRoom& room) {
  Drafts drafts(asks.size());
  int rows = room.rows;
  for (const DraftAsk& ask : asks) texts_.follow(*ask.sequence);
  texts_.read_sequences();
  if (model_ != nullptr) model_->keep(asks);
  const auto most = [&](std::size_t ask) { return std::min(asks[ask].most, draft_length_); };
  std::vector<Growth> growing = first_growths(asks, recalled, room.queue);
  if (is_spread_) rows = static_cast<int>(rows / of_mine_);
  while (!growing.empty() && (rows > 0 || explores_)) {
    std::vector<Position> positions = look_ahead(asks, growing);
    std::vector<Growth> grown;
    for (std::size_t i = 0; i < growing.size(); ++i) {
      if (positions[i].guesses.empty()) continue;
      Growth& g = growing[i];
      std::vector<Position>& asked = asked_[asks[g.ask].sequence->id];
      const Position& p = asked.emplace_back(std::move(positions[i]));
      g.probability = g.probability * p.estimate / kRatioOne;
      if (g.probability < std::int64_t{g.value.least} * kRatioOne) g.may_pay = false;
      if (!goes_on(g)) continue;
      g.draft.push_back(p.choice().token);
      grown.push_back(std::move(g));
    }
    deal_rows(asks, grown, rows, drafts);
    std::erase_if(grown, [&](const Growth& g) {
      return !goes_on(g) || std::ssize(g.draft) >= most(g.ask) ||
             std::find(end_ids_.begin(), end_ids_.end(), g.draft.back()) != end_ids_.end();
    });
    growing = std::move(grown);
  }
  if (is_spread_) share(asks, drafts);
  return drafts;
}

// Every rank gets the drafts of those that made them, what is expected of all, the time of the
// slowest, and, if it explores, all estimates. Collective over the group.
void GuessDrafter::share(std::span<const DraftAsk> asks, Drafts& drafts) {
  constexpr std::int64_t kUnit = 1000;  // times are sent in us
  const std::size_t draft = static_cast<std::size_t>(draft_length_) + 1,
                    width = draft + (explores_ ? draft : 0), end = drafts.size() * width;
  std::vector<std::int32_t> mine(end + 4), all(mine.size() * group_->size());
  mine[end] = model_rounds_.rounds;
  mine[end + 1] = clamped<std::int32_t>(model_rounds_.ns / kUnit);
  mine[end + 2] = clamped<std::int32_t>(model_rounds_.reading_ns / kUnit);
  mine[end + 3] = clamped<std::int32_t>(std::lround(kRatioOne * expected_value_));
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    mine[i * width] = static_cast<std::int32_t>(drafts[i].size());
    std::copy(drafts[i].begin(), drafts[i].end(), mine.begin() + i * width + 1);
    if (!explores_) continue;
    const std::vector<int> estimates = estimates_of(asks[i].sequence->id);
    mine[i * width + draft] = static_cast<std::int32_t>(estimates.size());
    std::copy(estimates.begin(), estimates.end(), mine.begin() + i * width + draft + 1);
  }
  all_gather(*group_, all, mine);
  expected_value_ = 0;
  for (std::size_t at = end; at < all.size(); at += mine.size()) {
    model_rounds_.rounds = std::max(model_rounds_.rounds, all[at]);
    model_rounds_.ns = std::max(model_rounds_.ns, all[at + 1] * kUnit);
    model_rounds_.reading_ns = std::max(model_rounds_.reading_ns, all[at + 2] * kUnit);
    expected_value_ += static_cast<double>(all[at + 3]) / kRatioOne;
  }
  for (std::size_t i = 0; i < drafts.size(); ++i)
    for (std::size_t at = i * width; at < all.size(); at += mine.size()) {
      if (all[at] > 0) drafts[i].assign(&all[at + 1], &all[at + 1] + all[at]);
      const std::size_t told = at + draft;
      if (explores_ && all[told] > 0)
        told_[asks[i].sequence->id].assign(&all[told + 1], &all[told + 1] + all[told]);
    }
}

}  // namespace taper
