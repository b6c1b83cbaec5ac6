// SPDX-License-Identifier: Apache-2.0
#include "train/CallTable.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/Packing.hpp"
#include "comm/Collectives.hpp"

namespace taper {

std::vector<DoneCall> gather_calls(const Group& world, const std::vector<CallSpan>& mine) {
  const auto of_ranks = all_gather_string(world, packed(mine));
  if (world.rank() != 0) return {};
  // A call may come several times in an iteration: its k-th time is the same on all its ranks.
  using Key = std::tuple<std::string, std::string, std::string, int>;
  std::map<Key, DoneCall> done;
  for (const std::string& bytes : of_ranks) {
    std::map<Key, int> times;
    for (const CallSpan& span : unpacked<std::vector<CallSpan>>(bytes)) {
      Key key{span.name, span.model, to_string(span.layout), 0};
      std::get<int>(key) = times[key]++;
      const auto [entry, is_new] = done.try_emplace(
          key, DoneCall{span.name, span.model, span.layout, span.begin_s, span.end_s});
      DoneCall& call = entry->second;
      call.begin_s = std::min(call.begin_s, span.begin_s);
      call.end_s = std::max(call.end_s, span.end_s);
      call.busy_s += (span.end_s - span.begin_s) / span.layout.grid.ranks();
      call.wait_s += span.wait_s / span.layout.grid.ranks();
    }
  }
  std::vector<DoneCall> calls;
  for (auto& [key, call] : done) calls.push_back(std::move(call));
  std::ranges::stable_sort(calls, {}, &DoneCall::begin_s);
  return calls;
}

void add_calls(RunFile& file, std::int64_t iteration, const std::vector<DoneCall>& calls) {
  for (const DoneCall& call : calls)
    file.add_record("calls", iteration,
                    {{"call", call.name},
                     {"model", call.model},
                     {"first_rank", std::int64_t{call.layout.first}},
                     {"ranks", std::int64_t{call.layout.grid.ranks()}},
                     {"tp", std::int64_t{call.layout.grid.tp}},
                     {"dp", std::int64_t{call.layout.grid.dp}},
                     {"start_s", call.begin_s},
                     {"end_s", call.end_s},
                     {"busy_s", call.busy_s},
                     {"wait_s", call.wait_s}});
}

}  // namespace taper
