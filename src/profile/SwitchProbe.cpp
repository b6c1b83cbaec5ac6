// SPDX-License-Identifier: Apache-2.0
#include "profile/SwitchProbe.hpp"

#include <algorithm>
#include <functional>
#include <list>
#include <utility>

#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "comm/PieceMover.hpp"
#if defined(TAPER_CUDA)
#include "comm/nccl/Transport.hpp"
#endif
#include "device/Arena.hpp"
#include "kernels/Staging.hpp"
#include "kernels/attention.hpp"
#include "kernels/copy.hpp"
#include "reshape/Meeting.hpp"

namespace taper {
namespace {

constexpr int kRepeats = 9;
constexpr int kListedBlocks = 8;  // of the KV cache, per sequence that a meeting lists
constexpr int kPlanWords = 512;   // a plan with the state of the planner, about
constexpr std::int64_t kLargestMove = 32 << 20;

double median(std::vector<std::int64_t> ns) {
  std::nth_element(ns.begin(), ns.begin() + ns.size() / 2, ns.end());
  return static_cast<double>(ns[ns.size() / 2]) * 1e-9;
}

// The groups of a degree that count.
struct Groups {
  const Ranks* ranks;
  int degree;
  PairClass pair;
  const std::vector<PairClass>* pairs;  // by group

  const Group& mine() const { return ranks->groups.tp_group(degree); }
};

// Median over repeats and groups of what the slowest rank of a group takes for `work`, which all
// ranks begin together. Collective over the world.
double time_together(const Groups& groups, const std::function<void()>& work) {
  const Ranks& ranks = *groups.ranks;
  std::vector<std::int64_t> mine;
  for (int i = 0; i <= kRepeats; ++i) {
    barrier(ranks.world());
    const Timer timer;
    work();
    if (i > 0) mine.push_back(timer.nanoseconds());
  }
  std::vector<std::int64_t> all(mine.size() * ranks.size()), slowest;
  all_gather(ranks.world(), all, mine);
  for (int g = 0; g < ranks.size() / groups.degree; ++g)
    for (int i = 0; i < kRepeats && (*groups.pairs)[g] == groups.pair; ++i) {
      slowest.push_back(0);
      for (int r = g * groups.degree; r < (g + 1) * groups.degree; ++r)
        slowest.back() = std::max(slowest.back(), all[r * kRepeats + i]);
    }
  return median(std::move(slowest));
}

// Pages like those of a KV cache between two changes of layout: none of them lies in the
// processor's caches, since each use goes on where the one before stopped.
class ColdPages {
 public:
  // `used`: pages that a move uses, in a row.
  ColdPages(std::int64_t page_bytes, std::int64_t used, MemoryKind kind)
      : page_floats_(page_bytes / std::int64_t{sizeof(float)}),
        slots_(std::max(2 * kLargestMove / page_bytes + 1, used)),
        arena_(plan(slots_ * page_bytes, kind)),
        data_(arena_.take<float>(kItem, MemoryPhase::kAlways, slots_ * page_floats_)) {
    arena_.populate();
  }

  float* page(std::int64_t i) { return data_ + (first_ + i) * page_floats_; }
  // To the next pages, or to the first ones if fewer than `pages` are left.
  void go_on(std::int64_t pages) { first_ = first_ + 2 * pages <= slots_ ? first_ + pages : 0; }

 private:
  static constexpr const char* kItem = "pages";
  static MemoryPlan plan(std::int64_t bytes, MemoryKind kind) {
    MemoryPlan plan;
    plan.add(kItem, MemoryPhase::kAlways, bytes, kind);
    return plan;
  }

  std::int64_t page_floats_, slots_, first_ = 0;
  Arena arena_;
  float* data_;
};

// Every rank of the group sends `pages` pages to each of the others, as in a change of layout:
// packed first if the host does not reach the cache, and from GPU to GPU if the group connects
// them. What arrives is staged and then written, and so is what a rank keeps of its own: as much as
// it gets from each other one. Collective over the world.
double time_move(const Groups& groups, std::int64_t page_bytes, int pages) {
  const Group& group = groups.mine();
  const Exec& exec = groups.ranks->exec;
  const int degree = groups.degree, pairs = degree * (degree - 1);
  const std::int64_t all = std::int64_t{pages} * degree;
  std::vector<PieceMove> moves;
  for (int pair = 0, piece = 0; pair < pairs; ++pair) {
    const int from = pair / (degree - 1), other = pair % (degree - 1);
    for (int p = 0; p < pages; ++p, ++piece)
      moves.push_back(
          {piece, group.world_ranks()[from], group.world_ranks()[other + (other >= from ? 1 : 0)]});
  }
  const std::vector<std::int64_t> bytes(moves.size(), page_bytes);
  const MemoryKind stages = group.connects_devices() ? MemoryKind::kModel : MemoryKind::kStaging;
  ColdPages source(page_bytes, all, MemoryKind::kModel), cache(page_bytes, all, MemoryKind::kModel),
      stage(page_bytes, all, stages), parcels(page_bytes, all, stages);
  PieceMover mover;
  const auto copy = [&](ColdPages& from, ColdPages& to, std::int64_t begin, std::int64_t end) {
    Staged<BlockCopy> copies;
    for (std::int64_t i = begin; i < end; ++i) copies.push_back({to.page(i), from.page(i)});
    copy_blocks(exec, staging_view(copies), page_bytes / std::int64_t{sizeof(float)});
  };
  const auto exchange = [&](ColdPages& sent) {
#if defined(TAPER_CUDA)
    if (group.connects_devices()) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(degree),
                                       pages * page_bytes / std::int64_t{sizeof(float)});
      counts[static_cast<std::size_t>(group.rank())] = 0;
      return nccl::all_to_all_v(group, exec.stream(), stage.page(0), counts, sent.page(0), counts);
    }
#endif
    exec.fence();  // of what is packed
    mover.move(
        group, OwnMoves(group, moves, bytes), [&](int piece) { return sent.page(piece % all); },
        [&](int piece) { return stage.page(piece % all); });
  };
  return time_together(groups, [&] {
    ColdPages& sent = ArenaMemory::kHasStaging ? parcels : source;
    if (ArenaMemory::kHasStaging) copy(source, sent, 0, all - pages);
    exchange(sent);
    copy(source, stage, all - pages, all);
    exec.fence();
    copy(stage, cache, 0, all);
    exec.fence();
    for (ColdPages* c : {&source, &stage, &parcels, &cache}) c->go_on(all);
  });
}

// Running sequences of one rank, with a block table of some length each.
Scheduler some_sequences(int sequences) {
  Scheduler scheduler({sequences, sequences, kPage}, sequences * kListedBlocks);
  std::list<Sequence> running;
  std::int32_t next = 0;
  for (int i = 0; i < sequences; ++i) {
    Sequence s;
    s.id.prompt = i;
    s.computed = kListedBlocks * kPage;
    for (int b = 0; b < kListedBlocks; ++b) s.blocks.push_back(next++);
    running.push_back(std::move(s));
  }
  scheduler.adopt(std::move(running), {});
  return scheduler;
}

}  // namespace

TransferLine fit_transfer(const std::vector<TransferSample>& samples) {
  const TransferSample& first = samples.front();
  std::vector<double> slopes;
  for (std::size_t i = 1; i < samples.size(); ++i)
    slopes.push_back((samples[i].seconds - first.seconds) /
                     static_cast<double>(samples[i].bytes - first.bytes));
  std::sort(slopes.begin(), slopes.end());
  // Noise may make a larger transfer the faster one: never a rate above a terabyte per second.
  const double slope = std::max(slopes[slopes.size() / 2], 1e-12);
  return {std::max(0.0, first.seconds - slope * static_cast<double>(first.bytes)), 1.0 / slope};
}

MeasuredSwitch measure_switch(const Ranks& ranks, const PackedModel& weights,
                              const ModelParallel& parallel, int degree, PairClass pair,
                              const std::vector<PairClass>& pairs, std::int64_t page_bytes) {
  const Groups groups{&ranks, degree, pair, &pairs};
  MeasuredSwitch cost;
  cost.degree = degree;
  cost.pair = pair;
  cost.groups = time_together(groups, [&] { groups.mine(); });
  cost.weights = time_together(groups, [&] { ModelView(weights, parallel.shard()); });
  if (degree == 1) return cost;
  std::vector<TransferSample> samples;
  for (std::int64_t pages = 1;; pages *= 4) {
    const std::int64_t bytes = pages * page_bytes * (degree - 1);
    if (samples.size() >= 2 && bytes > kLargestMove) break;
    samples.push_back({bytes, time_move(groups, page_bytes, static_cast<int>(pages))});
  }
  cost.kv_move = fit_transfer(samples);
  return cost;
}

double measure_meeting(const Ranks& ranks, int sequences) {
  const LayoutChange change{Layout::uniform(1, ranks.chain),
                            Layout::uniform(ranks.size(), ranks.chain), 42};
  const Scheduler scheduler = some_sequences(sequences);
  const std::vector<PairClass> all{PairClass::kSameNode};  // one group, whatever its nodes
  std::vector<std::int64_t> plan;
  return time_together({&ranks, ranks.size(), all.front(), &all}, [&] {
    plan.resize(ranks.rank() == 0 ? kPlanWords : 0);
    broadcast_vector(ranks.world(), plan, 0);
    meet(ranks.world(), change, scheduler);
  });
}

}  // namespace taper
