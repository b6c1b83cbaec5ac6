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

}  // namespace taper
