// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReviewer.hpp"

#include <algorithm>
#include <utility>

namespace taper {
namespace {

constexpr std::int64_t kMemory = 4;  // generations that the scale remembers

}  // namespace

GenerationReview GenerationReviewer::review(const GenerationReport& report, const Workload& work,
                                            const std::vector<Outcome>& outcomes,
                                            std::int64_t scale) {
  const auto ns = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
  if (scale_ == 0) scale_ = scale;
  MadeGeneration made{report.first_layout, {}, ns(report.seconds), {}};
  std::vector<std::size_t> done_before{0};  // each switch, made or not
  for (const SwitchRecord& s : report.switches) {
    // Where the replay, on a machine as fast as the profile, has come as far.
    if (s.report.done)
      made.switches.push_back({ns(s.at_s) * kRatioOne / scale_, s.plan.layout, s.plan.repack});
    done_before.push_back(made.switches.size());
  }
  // Drafts as far as they reached in this generation, whatever the layout.
  DraftTable drafts;
  for (const ConsultationRecord& record : report.decisions) {
    for (const ReplicaSnapshot& r : record.snapshot.replicas) drafts.observe(r.running(), r.drafts);
    if (const auto rest = record.decision.rest_of_staying()) {
      const auto epoch = static_cast<std::size_t>(record.snapshot.epoch);
      made.forecasts.push_back({record.snapshot.elapsed_ns,
                                done_before[std::min(epoch, report.switches.size())], *rest});
    }
  }
  machine_.steps.set_drafts(drafts);
  GenerationReview found =
      taper::review(make_trace(work, outcomes), made, degrees_, chain_, machine_, consult_ns_);
  found.predicted_ns = found.replayed_ns * scale_ / kRatioOne;
  if (made.time_ns > 0 && found.replayed_ns > 0)
    scale_ += (std::clamp<std::int64_t>(made.time_ns * kRatioOne / found.replayed_ns, kRatioOne / 2,
                                        2 * kRatioOne) -
               scale_) /
              kMemory;
  return found;
}

}  // namespace taper
