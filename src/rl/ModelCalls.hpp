// SPDX-License-Identifier: Apache-2.0
//
// What models do with the samples of an iteration, each on ranks of its own. All ranks hold the
// same list of calls and go through it in one order, leaving out those of other ranks: calls of
// blocks that share no rank overlap by themselves, and nothing can deadlock.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/MetricValues.hpp"
#include "base/Timer.hpp"
#include "comm/Progress.hpp"
#include "rl/SampleSet.hpp"
#include "shard/ModelLayout.hpp"

namespace taper {

// What a model that adds a figure can do while responses are still generated, where its ranks have
// nothing to generate.
struct EarlyCall {
  const Group* replica = nullptr;  // of this rank; null on ranks of other models
  // Adds the figure to those samples that do not have it; all ranks of the replica have the same
  // samples. Collective over these.
  std::function<void(std::vector<Sample>& samples)> score;
};

// One model at work.
struct ModelCall {
  const char* name;   // a literal: of the phase, as "ref"
  std::string model;  // "reference"
  ModelLayout layout;
  const Group* group;  // of its ranks; null on all others
  // Adds its figure to those of samples.here() that do not have it, or learns from all. Collective
  // over its ranks, which are those of the samples.
  std::function<MetricValues(SampleSet& samples)> work;
  std::vector<SampleFigure> adds = {};
  EarlyCall early = {};
};

// When this rank worked at a call, in seconds since the iteration began.
struct CallSpan {
  std::string name, model;
  ModelLayout layout;
  double begin_s = 0.0, end_s = 0.0;
  double wait_s = 0.0;  // of it inside of collectives

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.name, self.model, self.layout, self.begin_s, self.end_s, self.wait_s);
  }
};

// Who is told of phases, whose names are literals.
struct PhaseListener {
  std::function<void(const char*)> begins;
  std::function<void(const char*)> is_elsewhere;  // this rank may have no part in it
};

// The calls of an iteration on this rank, from its begin on.
class CallRecord {
 public:
  // `progress` is that of this rank and must outlive it.
  CallRecord(PhaseListener listener, const Progress& progress)
      : listener_(std::move(listener)), progress_(progress) {}

  const PhaseListener& phase() const { return listener_; }
  // Does the work of a model in a phase of that name.
  void note(const char* name, const std::string& model, const ModelLayout& layout,
            const std::function<void()>& work);
  const std::vector<CallSpan>& spans() const { return spans_; }

 private:
  PhaseListener listener_;
  const Progress& progress_;
  Timer clock_;
  std::vector<CallSpan> spans_;
};

// Makes calls that do not wait for each other: in their order, but those of blocks of ranks before
// those on all ranks. A call on all ranks works on `samples` itself;
// others get copies, and what they add is brought to all ranks that hold the samples. Returns the
// figures of all calls, the same on all ranks. `record` may be null; of calls that are not on all
// ranks it gets the phases everywhere, and "wait" for bringing samples and figures and for the
// others. Collective over `world`, the ranks of the samples.
MetricValues make_calls(SampleSet& samples, const Group& world, std::span<const ModelCall> calls,
                        CallRecord* record);

}  // namespace taper
