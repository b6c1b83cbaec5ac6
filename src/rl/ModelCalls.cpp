// SPDX-License-Identifier: Apache-2.0
#include "rl/ModelCalls.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/Packing.hpp"
#include "comm/Collectives.hpp"

namespace taper {

void CallRecord::note(const char* name, const std::string& model, const ModelLayout& layout,
                      const std::function<void()>& work) {
  listener_.begins(name);
  CallSpan span{name, model, layout, clock_.seconds()};
  const double waited = progress_.seconds_in_collectives();
  work();
  span.end_s = clock_.seconds();
  span.wait_s = progress_.seconds_in_collectives() - waited;
  spans_.push_back(std::move(span));
}

MetricValues make_calls(SampleSet& samples, const Group& world, std::span<const ModelCall> calls,
                        CallRecord* record) {
  const auto is_on_all = [&](const ModelCall& call) { return call.layout.is_on_all(world.size()); };
  const bool has_copies = !std::all_of(calls.begin(), calls.end(), is_on_all);
  if (record != nullptr && has_copies) {
    for (const ModelCall& call : calls) record->phase().is_elsewhere(call.name);
    record->phase().begins("wait");
  }
  // Copies first: from here to the end blocks do not wait for each other.
  std::map<std::pair<int, int>, SampleSet> copies;
  const auto copy_of = [&](const ModelCall& call) -> SampleSet& {
    const RankBlock block = call.layout.ranks();
    return copies[{block.first, block.count}];
  };
  for (const ModelCall& call : calls) {
    if (is_on_all(call)) continue;
    const RankBlock block = call.layout.ranks();
    if (!copies.contains({block.first, block.count}))
      copy_of(call) = samples.copy_to(block, call.group);
  }
  std::vector<MetricValues> figures(calls.size());
  // Those of blocks first: in one on all ranks every block waits for the others.
  for (const bool on_all : {false, true})
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const ModelCall& call = calls[c];
      if (call.group == nullptr || is_on_all(call) != on_all) continue;
      SampleSet& set = on_all ? samples : copy_of(call);
      const auto work = [&] { figures[c] = call.work(set); };
      record == nullptr ? work() : record->note(call.name, call.model, call.layout, work);
    }
  if (record != nullptr && has_copies) record->phase().begins("wait");
  MetricValues all;
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const ModelCall& call = calls[c];
    if (!is_on_all(call)) {
      for (const SampleFigure& figure : call.adds) samples.take(copy_of(call), figure);
      figures[c] =
          unpacked<MetricValues>(broadcast_string(world, packed(figures[c]), call.layout.first));
    }
    add(all, figures[c]);
  }
  return all;
}

}  // namespace taper
