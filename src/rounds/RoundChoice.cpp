// SPDX-License-Identifier: Apache-2.0
#include "rounds/RoundChoice.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/Bytes.hpp"
#include "planner/Planner.hpp"
#include "rounds/PlayedRound.hpp"
#include "rounds/PromptRounds.hpp"

namespace taper {
namespace {

constexpr std::uint64_t kSeed = 20260824;
// Draws of lengths for one price, and what is drawn at least of a period.
constexpr int kDraws = 1 << 18, kMostScenarios = 32, kLeastScenarios = 4;
constexpr std::int64_t kBetterPercent = 98;

}  // namespace

RoundChoice::RoundChoice(const LatencyProfile& profile, std::span<const Layout> layouts, int limit)
    : steps_(profile),
      cost_(profile),
      limit_(limit),
      lengths_(PlannerOptions().half_life),
      likeness_(PlannerOptions().half_life) {
  for (const Layout& layout : layouts) shapes_.push_back(resolve(layout, steps_));
  lengths_.begin(limit);
}

std::int64_t RoundChoice::fastest_ns(const ReplayTrace& trace) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const LayoutShape& shape : shapes_)
    least = std::min(least, start_replay(trace, shape, cost_).finish());
  return least;
}

void RoundChoice::add(std::span<const int> kept) {
  kept_.insert(kept_.end(), kept.begin(), kept.end());
}

void RoundChoice::end_period(int samples) {
  lengths_.learn(kept_, {});
  likeness_.learn(kept_, samples);
  kept_.clear();
}

std::int64_t RoundChoice::price(const Workload& work, double choice) {
  const int samples = std::max(1, work.samples), prompts = std::max(1, work.sequences / samples);
  PromptRounds rounds({RoundMode::kTail, choice, 1.0}, prompts, samples);
  const int started = static_cast<int>(std::ssize(rounds.next().prompts));
  // Short rounds until a long one is full; it has what they put off.
  const int shorts =
      started == prompts ? 1 : (prompts + started - prompts - 1) / (started - prompts);
  const std::int64_t draws = std::int64_t{shorts} * started * samples;
  const auto futures = static_cast<int>(std::clamp<std::int64_t>(
      kDraws / std::max<std::int64_t>(1, draws), kLeastScenarios, kMostScenarios));
  Scenarios scenarios(kSeed);
  scenarios.begin(0, likeness_.share());
  const std::int64_t prompt = work.prompt_tokens / std::max(1, work.sequences);
  const std::vector<SequenceState> sequences = initial_sequences(
      static_cast<int>(draws), samples, prompt, work.max_new_tokens, shapes_.front().layout);
  std::int64_t time = 0, kept = 0;
  for (int k = 0; k < futures; ++k) {
    const std::vector<int> lengths = scenarios.lengths(k, sequences, lengths_);
    PromptRounds period = rounds;
    for (int i = 0; i < (started == prompts ? 1 : shorts + 1); ++i) {
      const Round round = period.next();
      const PlayedRound played = play_round(round, work, prompt, [&](std::int64_t number, int s) {
        return lengths[static_cast<std::size_t>(number * samples + s)];
      });
      time += fastest_ns(played.trace);
      kept += prompts;
      period.conclude(round, played.longest_kept);
    }
  }
  return time / std::max<std::int64_t>(1, kept);
}

double RoundChoice::choose(const Workload& work, double now) {
  if (lengths_.weight() == 0) return 1.0;
  double best = now;
  std::int64_t least = price(work, now) * kBetterPercent / 100;
  for (const double choice : kChoices)
    if (const std::int64_t ns = choice == now ? least : price(work, choice); ns < least) {
      best = choice;
      least = ns;
    }
  return best;
}

std::string RoundChoice::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  out.list(std::vector<std::int64_t>(kept_.begin(), kept_.end()));
  out.text(lengths_.save());
  out.text(likeness_.save());
  return bytes;
}

void RoundChoice::load(std::string_view bytes) {
  ByteReader in(bytes);
  std::vector<std::int64_t> kept;
  in.list(kept);
  kept_.assign(kept.begin(), kept.end());
  lengths_.load(in.text());
  likeness_.load(in.text());
  lengths_.begin(limit_);  // a run may go on with another one
}

}  // namespace taper
