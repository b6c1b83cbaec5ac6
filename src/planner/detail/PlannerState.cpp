// SPDX-License-Identifier: Apache-2.0
#include "planner/detail/PlannerState.hpp"

#include <algorithm>
#include <map>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "planner/Dealer.hpp"
#include "planner/FirstLayout.hpp"

namespace taper {
namespace {

// Sequences x scenarios of a search, so that few sequences are judged on more futures.
constexpr int kMostDraws = 1024;
constexpr std::int64_t kStateVersion = 7;
constexpr std::size_t kWord = sizeof(std::int64_t);  // of which the saved state consists
// Of one decision, as PlanSearch counts it: about half a millisecond.
constexpr std::int64_t kSearchWork = 14336;
// More ranks than these are judged by a sample, of two blocks at least.
constexpr int kMostRanks = 64;

template <class T>
std::string bytes_of(const T& value) {
  std::string bytes;
  ByteWriter(bytes).value(value);
  return bytes;
}

std::string bytes_of(const std::vector<ReplaySwitch>& made) {
  std::string bytes;
  ByteWriter out(bytes);
  for (const ReplaySwitch& s : made) {
    std::vector<std::int64_t> degrees;
    for (const LayoutGroup& group : s.layout.groups()) degrees.push_back(group.tp);
    out.value(s.at_ns);
    out.value(std::int64_t{s.repack == Repack::kYes});
    out.list(degrees);
  }
  return bytes;
}

std::vector<ReplaySwitch> switches_of(std::string_view bytes, const DivisorChain& chain) {
  std::vector<ReplaySwitch> made;
  std::vector<std::int64_t> degrees;
  for (ByteReader in(bytes); !in.done();) {
    const auto at_ns = in.value<std::int64_t>(), repack = in.value<std::int64_t>();
    in.list(degrees);
    made.push_back({at_ns, Layout({degrees.begin(), degrees.end()}, chain),
                    repack != 0 ? Repack::kYes : Repack::kNo});
  }
  return made;
}

}  // namespace

Planner::State::State(const LatencyProfile& p, const DivisorChain& chain, const PlannerOptions& o,
                      std::vector<int> usable)
    : profile(p),
      options(o),
      degrees(std::move(usable)),
      steps(profile),
      cost(profile),
      lengths(o.half_life),
      likeness(o.half_life),
      scenarios(o.seed),
      budget(o.budget_ppm, o.fallback_ppm),
      whole(chain, steps, degrees) {
  const int block = degrees.back(), blocks = std::max(2, kMostRanks / block);
  if (chain.ranks() > block * blocks)
    sample.emplace(sample_chain(chain, block, blocks), steps, degrees);
}

PlanSetting Planner::State::setting(Cluster& cluster) {
  // No unequal groups of a sample: they say nothing about the other ranks.
  return {cluster.uniform(),
          cluster.chain(),
          degrees,
          steps,
          cost,
          lengths,
          scenarios,
          [&cluster](const Layout& layout) -> const LayoutShape& { return cluster.shape(layout); },
          work.slots_per_rank,
          options.look_ahead,
          options.mixed_groups && !is_sample(cluster),
          options.repack};
}

std::optional<std::vector<PricedPlan>> Planner::State::search_on(const Snapshot& snapshot) {
  Cluster& cluster = priced(snapshot.layout);
  const bool sampled = is_sample(cluster);
  if (!search || search->epoch != snapshot.epoch) {
    const Snapshot seen = sampled ? sample_of(snapshot, cluster.chain(), degrees.back()) : snapshot;
    const int count = seen.alive();
    search.reset();
    search.emplace(
        Search{snapshot.epoch, snapshot.alive(), count,
               PlanSearch(setting(cluster), cluster.shape(seen.layout), expand(seen, expansion()),
                          scenarios_for(count), StepPhase::kAnywhere)});
  }
  if (!search->plans.advance(kSearchWork)) return std::nullopt;
  std::vector<PricedPlan> plans = search->plans.plans();
  if (sampled)
    for (PricedPlan& p : plans) {
      // A layout of the sample stands for the same degree on all ranks, and its number of
      // sequences for the same share of all sequences.
      p.plan.layout = Layout::uniform(p.plan.layout.groups().front().tp, whole.chain());
      if (p.plan.start == PlanStart::kBelow)
        p.plan.argument = p.plan.argument * search->alive / search->priced;
    }
  search.reset();
  return plans;
}

int Planner::State::scenarios_for(int sequences) const {
  return std::clamp(kMostDraws / std::max(1, sequences), 8, options.scenarios);
}

bool Planner::State::fits(const LayoutShape& to, std::span<const SequenceState> sequences,
                          std::span<const SequenceMove> moves) const {
  if (work.kv_blocks.empty()) return true;
  std::vector<int> blocks(to.curves.size(), 0);
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (sequences[i].context > 0)
      blocks[moves[i].to] += (sequences[i].context + work.block_size) / work.block_size;
  for (std::size_t r = 0; r < blocks.size(); ++r) {
    const auto at = work.kv_blocks.find(to.layout.groups()[r].tp);
    if (at != work.kv_blocks.end() && blocks[r] > at->second) return false;
  }
  return true;
}

ExpandOptions Planner::State::expansion() const {
  const int samples = std::max(1, work.samples);
  return {mean_prompt(), lengths.limit(), samples,
          most_readers(samples, mean_prompt(), work.max_new_tokens)};
}

std::int64_t Planner::State::arrival_ns(const Snapshot& snapshot) {
  std::vector<std::int64_t> step_ns;
  std::vector<int> ranks;
  for (std::size_t r = 0; r < snapshot.replicas.size(); ++r) {
    const LayoutGroup& group = snapshot.layout.groups()[r];
    const ReplicaSnapshot& replica = snapshot.replicas[r];
    step_ns.push_back(steps.curve(group).decode_ns(replica.running(), replica.context));
    ranks.push_back(group.tp);
  }
  return scenarios.arrival_ns(step_ns, ranks, scenarios_for(snapshot.alive()));
}

const LayoutShape& Planner::State::first_shape() {
  Cluster& cluster = sample ? *sample : whole;
  const std::int64_t count =
      std::int64_t{work.sequences} * cluster.chain().ranks() / whole.chain().ranks();
  const FirstSequences sequences{static_cast<int>(std::max<std::int64_t>(1, count)), work.samples,
                                 mean_prompt(), work.max_new_tokens};
  PlanSetting ahead = setting(cluster);
  ahead.look_ahead = options.look_ahead && options.mode == PlannerMode::kAdaptive;
  // A layout of the sample stands for the same degree on all ranks.
  return *whole.uniform()[choose_first_layout(ahead, sequences, options.scenarios)];
}

// Learns how far drafts reach, the scale of step times, and of the hazards from how many sequences
// ended since the last snapshot of the same epoch.
void Planner::State::observe(const Snapshot& now) {
  DraftTable drafts = steps.drafts();
  for (const ReplicaSnapshot& r : now.replicas) drafts.observe(r.running(), r.drafts);
  if (!(drafts == steps.drafts())) steps.set_drafts(drafts);
  std::vector<StepModel::Speed> speeds;
  for (std::size_t r = 0; r < now.replicas.size(); ++r)
    speeds.push_back({now.layout.groups()[r].tp, now.replicas[r].running(), now.replicas[r].speed});
  steps.observe(speeds);
  if (last.epoch == now.epoch && now.elapsed_ns > last.elapsed_ns) {
    std::int64_t expected = 0, ended = now.finished() - last.finished, at_risk = 0, growth = 0;
    for (const auto& [count, from, step_ns] : last.buckets) {
      const std::int64_t to =
          from + (now.elapsed_ns - last.elapsed_ns) / std::max<std::int64_t>(1, step_ns);
      if (to >= lengths.limit()) {
        // They end at the limit for certain, which says nothing about the hazards.
        ended -= count;
        continue;
      }
      expected += count * lengths.expected_ends(static_cast<int>(from), static_cast<int>(to));
      at_risk += count;
      growth += count * ((to - from) * kRatioOne / std::max<std::int64_t>(1, from));
    }
    if (at_risk > 0)
      lengths.observe(expected, static_cast<int>(std::max<std::int64_t>(0, ended)),
                      static_cast<int>(growth / at_risk));
  }
  last = {now.epoch, now.elapsed_ns, now.finished(), {}};
  const auto sequences = expand(now, expansion());
  const LayoutShape& here = whole.shape(now.layout);
  for (std::size_t i = 0; i < sequences.size();) {
    std::size_t j = i;
    while (j < sequences.size() && sequences[j].replica == sequences[i].replica &&
           sequences[j].response == sequences[i].response &&
           sequences[j].context == sequences[i].context)
      ++j;
    const int r = sequences[i].replica;
    if (sequences[i].context > 0)
      last.buckets.push_back(
          {static_cast<std::int64_t>(j - i), sequences[i].response,
           here.curves[r]->token_ns(now.replicas[r].running(), now.replicas[r].context)});
    i = j;
  }
}

bool Planner::State::is_settled(const Snapshot& now) const {
  return settled.epoch == now.epoch && now.elapsed_ns < settled.until_ns &&
         now.alive() > settled.alive;
}

// Halfway to the time of the next search, but after a sixteenth of the elapsed time at the latest.
std::int64_t Planner::State::wait_ns(const Snapshot& now) const {
  const std::int64_t most = now.elapsed_ns / 16;
  return is_settled(now) ? std::min((settled.until_ns - now.elapsed_ns) / 2, most) : most;
}

void Planner::State::notice_refusal(const Snapshot& now) {
  auto& [done, acted_in_epoch, refusals, wait_until] = switching;
  if (acted_in_epoch < 0) return;
  refusals = now.epoch == acted_in_epoch ? refusals + 1 : 0;
  acted_in_epoch = -1;
  // After n refusals in a row, 2^(n-1) - 1 consultations are skipped, at most 31.
  if (refusals > 0)
    wait_until =
        now.consultation - 1 + (std::int64_t{1} << std::min<std::int64_t>(refusals - 1, 5));
}

std::string Planner::State::Seen::save() const {
  std::string bytes;
  if (epoch < 0) return bytes;
  ByteWriter out(bytes);
  out.value(epoch);
  out.value(elapsed_ns);
  out.value(finished);
  for (const Bucket& bucket : buckets) out.value(bucket);
  return bytes;
}

void Planner::State::Seen::load(std::string_view bytes) {
  *this = {};
  ByteReader in(bytes);
  if (in.done()) return;
  in.value(epoch);
  in.value(elapsed_ns);
  in.value(finished);
  while (!in.done()) buckets.push_back(in.value<Bucket>());
}

// The version, then each part after its number of integers.
std::string Planner::State::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  out.value(kStateVersion);
  const auto put = [&](std::string_view part) {
    out.value(static_cast<std::int64_t>(part.size() / kWord));
    out.bytes(part);
  };
  put(steps.save());
  put(lengths.save());
  put(budget.save());
  put(last.save());
  put(bytes_of(switching));
  put(bytes_of(made));
  put(likeness.save());
  if (!steps.drafts().empty()) put(steps.drafts().save());
  return bytes;
}

void Planner::State::load(std::string_view bytes) {
  try {
    read(bytes);
  } catch (const Error&) {
    TAPER_FAIL(ExitCode::kBadInput,
               "the saved state of the planner is damaged or of another version");
  }
}

void Planner::State::read(std::string_view bytes) {
  ByteReader in(bytes);
  TAPER_VALIDATE(in.value<std::int64_t>() == kStateVersion, "another version");
  const auto part = [&] {
    const auto words = in.value<std::size_t>();
    TAPER_VALIDATE(words <= bytes.size() / kWord, "a part longer than all of them");
    return in.bytes(words * kWord);
  };
  steps.load(part());
  lengths.load(part());
  budget.load(part());
  last.load(part());
  switching = ByteReader(part()).value<Switching>();
  made = switches_of(part(), whole.chain());
  likeness.load(part());
  DraftTable drafts;
  if (!in.done()) drafts.load(part());
  steps.set_drafts(options.drafts ? drafts : DraftTable());
  TAPER_VALIDATE(in.done(), "more than its parts");
}

}  // namespace taper
