// SPDX-License-Identifier: Apache-2.0
#include "reshape/Meeting.hpp"

#include <string>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

void append(ByteWriter& out, const Sequence& s, bool running) {
  for (const int v :
       {int{running}, s.samples, s.computed, s.length(), s.prompt_length, s.max_new_tokens})
    out.value(v);
  out.value(s.id);
  out.list(s.blocks);
}

ListedSequence read(ByteReader& in, int replica) {
  ListedSequence s;
  s.replica = replica;
  s.running = in.value<int>() != 0;
  for (int* const v : {&s.samples, &s.computed, &s.length, &s.prompt_length, &s.limit})
    in.value(*v);
  in.value(s.id);
  in.list(s.blocks);
  return s;
}

}  // namespace

SequenceList meet(const Group& world, const LayoutChange& change, const Scheduler& scheduler) {
  std::vector<std::uint64_t> hashes(world.size());
  all_gather(world, hashes, std::vector<std::uint64_t>{change.hash});
  for (int r = 1; r < world.size(); ++r)
    if (hashes[r] != hashes[0])
      TAPER_FAIL(ExitCode::kFailure, "rank " << r << " came to change the layout for another "
                                             << "reason than rank 0 (decisions " << hashes[r]
                                             << " and " << hashes[0] << ")");
  const int replica = change.from.replica_of(world.world_rank());
  std::string mine;
  if (change.from.groups()[replica].first == world.world_rank()) {
    ByteWriter out(mine);
    for (const Sequence& s : scheduler.running()) append(out, s, true);
    for (const Sequence& s : scheduler.waiting()) append(out, s, false);
  }
  const auto texts = all_gather_string(world, mine);
  SequenceList list;
  for (int g = 0; g < change.from.replicas(); ++g)
    for (ByteReader in(texts[change.from.groups()[g].first]); !in.done();)
      list.push_back(read(in, g));
  return list;
}

std::vector<Destination> share_out(const LayoutChange& change, const SequenceList& sequences,
                                   bool repack) {
  std::vector<Destination> destinations(sequences.size());
  const auto& groups = change.to.groups();
  const int total_ranks = change.to.ranks();
  std::int64_t all = 0;
  for (const auto& s : sequences) all += s.samples;
  std::vector<std::int64_t> taken(groups.size(), 0);
  std::vector<std::size_t> moving;
  const auto quota = [&](int g) { return (all * groups[g].tp + total_ranks - 1) / total_ranks; };
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const LayoutGroup& before = change.from.groups()[sequences[i].replica];
    const int g = change.to.replica_of(before.first);
    const bool splits = groups[g].tp < before.tp;
    destinations[i].replica = g;
    if (!splits && !(repack && taken[g] + sequences[i].samples > quota(g)))
      taken[g] += sequences[i].samples;
    else
      moving.push_back(i);
  }
  for (const std::size_t i : moving) {
    const LayoutGroup& before = change.from.groups()[sequences[i].replica];
    int best = -1;
    for (int g = 0; g < change.to.replicas(); ++g) {
      if (!repack && !before.has(groups[g].first)) continue;
      // The least sequences per rank, counting this one.
      if (best < 0 || taken[g] * groups[best].tp < taken[best] * groups[g].tp) best = g;
    }
    TAPER_ENSURE(best >= 0);
    destinations[i].replica = best;
    taken[best] += sequences[i].samples;
  }
  return destinations;
}

}  // namespace taper
