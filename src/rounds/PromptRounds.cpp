// SPDX-License-Identifier: Apache-2.0
#include "rounds/PromptRounds.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "base/ReplicaSnapshot.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// Of a period in which nothing is put off. A choice takes as long as some hundred steps, and what
// is known of lengths does not change faster.
constexpr int kRoundsWithoutLong = 4;

// Rounded up, but 10 times 1.1 are 11.
int multiple_of(int count, double factor) {
  return static_cast<int>(std::ceil(count * factor - 1e-6));
}

void add_problem(std::vector<std::string>& list, const std::string& key, double factor) {
  if (factor >= 1.0 && factor <= 8.0) return;
  list.push_back(key + format_text(" is %g", factor) +
                 " (what a short round chooses from, in multiples of what it keeps); set it to 1 "
                 "to 8");
}

}  // namespace

std::vector<std::pair<std::string, RoundMode>> named_round_modes() {
  return {{"plain", RoundMode::kPlain},
          {"tail", RoundMode::kTail},
          {"predicted", RoundMode::kPredicted}};
}

const char* to_string(RoundKind kind) {
  switch (kind) {
    case RoundKind::kPlain:
      return "plain";
    case RoundKind::kShort:
      return "short";
    case RoundKind::kLong:
      return "long";
  }
  return "?";
}

std::vector<std::string> RoundOptions::problems() const {
  std::vector<std::string> list;
  if (prompts != 0.0) add_problem(list, "Rollout/Tail Prompts", prompts);
  add_problem(list, "Rollout/Tail Samples", samples);
  if (is_priced() && samples != 1.0)
    list.push_back(
        "Rollout/Tail Prompts is 0 (chosen by price) and Rollout/Tail Samples is not 1 (whose "
        "price is not known); set Tail Samples to 1, or Tail Prompts to 1 to 8");
  if (mode == RoundMode::kPredicted && prompts == 0.0)
    list.push_back(
        "Rollout/Rounds is predicted and Rollout/Tail Prompts is 0 (which is chosen by price for "
        "rounds that race only); set Tail Prompts to 1 to 8");
  if (mode == RoundMode::kPredicted && samples != 1.0)
    list.push_back(
        "Rollout/Rounds is predicted and Rollout/Tail Samples is not 1 (nothing is started there "
        "that is not kept); set Tail Samples to 1");
  return list;
}

PromptRounds::PromptRounds(const RoundOptions& options, int prompts, int samples,
                           std::int64_t items, std::function<std::int64_t(std::int64_t)> item)
    : options_(options),
      prompts_(prompts),
      samples_(samples),
      factor_(options.is_priced() ? 1.0 : options.prompts),
      item_(std::move(item)) {
  if (options.mode == RoundMode::kPredicted) lengths_.resize(static_cast<std::size_t>(items));
}

std::vector<std::int64_t> PromptRounds::next_numbers(int count) const {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), next_);
  return numbers;
}

Round PromptRounds::next() const {
  if (options_.is_plain())
    return {RoundKind::kPlain, next_numbers(prompts_), {}, samples_, {prompts_, samples_}};
  // If nothing is put off any more, those that wait would do so for ever.
  const bool is_filled_up = factor_ == 1.0 && !waiting_.empty();
  const auto from_waiting = std::min<std::int64_t>(std::ssize(waiting_), prompts_);
  if (from_waiting < prompts_ && !is_filled_up) return short_round();
  Round round{RoundKind::kLong,
              next_numbers(prompts_ - static_cast<int>(from_waiting)),
              {},
              samples_,
              {prompts_, samples_}};
  round.prompts.insert(round.prompts.begin(), waiting_.begin(), waiting_.begin() + from_waiting);
  return round;
}

Round PromptRounds::short_round() const {
  Round round{RoundKind::kShort,
              next_numbers(multiple_of(prompts_, factor_)),
              {},
              multiple_of(samples_, options_.samples),
              {prompts_, samples_}};
  round.is_race = options_.mode == RoundMode::kTail &&
                  (std::ssize(round.prompts) > prompts_ || round.samples > samples_);
  if (options_.mode == RoundMode::kTail) return round;
  // The shortest of the last pass, equal ones in their order.
  std::vector<std::pair<int, std::int64_t>> order;
  for (const std::int64_t number : round.prompts) {
    const int length = lengths_.empty() ? 0 : lengths_.at(static_cast<std::size_t>(item_(number)));
    if (length == 0)  // not met before: nothing can be told
      return {RoundKind::kPlain, next_numbers(prompts_), {}, samples_, round.goal};
    order.emplace_back(length, number);
  }
  std::sort(order.begin(), order.end());
  round.prompts.clear();
  for (std::size_t i = 0; i < order.size(); ++i)
    (i < static_cast<std::size_t>(prompts_) ? round.prompts : round.put_off)
        .push_back(order[i].second);
  std::sort(round.prompts.begin(), round.prompts.end());
  std::sort(round.put_off.begin(), round.put_off.end());
  return round;
}

void PromptRounds::conclude(const Round& round, std::span<const int> lengths) {
  TAPER_EXPECT(lengths.size() == round.prompts.size());
  std::vector<std::int64_t> put_off = round.put_off;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0)
      put_off.push_back(round.prompts[i]);
    else if (!lengths_.empty())
      lengths_.at(static_cast<std::size_t>(item_(round.prompts[i]))) = lengths[i];
  }
  std::erase_if(waiting_, [&](std::int64_t number) {
    return std::binary_search(round.prompts.begin(), round.prompts.end(), number);
  });
  next_ = std::max(next_, round.prompts.back() + 1);
  if (!put_off.empty()) next_ = std::max(next_, put_off.back() + 1);
  waiting_.insert(waiting_.end(), put_off.begin(), put_off.end());
  ++age_;
  const bool is_over = factor_ > 1.0 ? round.kind == RoundKind::kLong : age_ == kRoundsWithoutLong;
  if (is_over) age_ = 0;
}

PromptKey PromptRounds::key(std::int64_t number) const {
  // Iterations count from 1.
  return {static_cast<std::uint64_t>(1 + number / prompts_),
          static_cast<std::uint64_t>(number % prompts_)};
}

void PromptRounds::begin_at(std::int64_t number) {
  next_ = number;
  waiting_.clear();
  age_ = 0;
}

std::string PromptRounds::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  out.value(next_);
  out.value(age_);
  out.value(static_cast<std::int64_t>(std::lround(factor_ * kRatioOne)));
  out.list(waiting_);
  out.list(std::vector<std::int64_t>(lengths_.begin(), lengths_.end()));
  return bytes;
}

void PromptRounds::load(std::string_view bytes) {
  ByteReader in(bytes);
  std::vector<std::int64_t> lengths;
  in.value(next_);
  in.value(age_);
  const double factor = static_cast<double>(in.value<std::int64_t>()) / kRatioOne;
  if (options_.is_priced()) factor_ = factor;
  in.list(waiting_);
  in.list(lengths);
  TAPER_VALIDATE(in.done() && std::is_sorted(waiting_.begin(), waiting_.end()) &&
                     (waiting_.empty() || waiting_.back() < next_),
                 "what is saved of the prompts that wait for a long round is damaged");
  if (lengths_.empty()) return;
  TAPER_VALIDATE(lengths.empty() || lengths.size() == lengths_.size(),
                 "the lengths of " << lengths.size() << " prompts were saved, and Data/Prompts has "
                                   << lengths_.size()
                                   << "; continue with the same prompts, or set Rollout/Rounds to "
                                      "tail or plain");
  std::copy(lengths.begin(), lengths.end(), lengths_.begin());
}

}  // namespace taper
