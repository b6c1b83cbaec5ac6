// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReviewer.hpp"

#include <utility>

namespace taper {

GenerationReview GenerationReviewer::review(const GenerationReport& report, const Workload& work,
                                            const std::vector<Outcome>& outcomes,
                                            std::int64_t scale) {
  const auto ns = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
  MadeGeneration made{report.first_layout, {}, ns(report.seconds), {}};
  for (const SwitchRecord& s : report.switches)
    if (s.report.done) made.switches.push_back({ns(s.at_s), s.plan.layout, s.plan.repack});
  // Drafts as far as they reached in this generation, whatever the layout.
  DraftTable drafts;
  for (const ConsultationRecord& record : report.decisions) {
    for (const ReplicaSnapshot& r : record.snapshot.replicas) drafts.observe(r.running(), r.drafts);
    if (!record.decision.prices.empty())
      made.forecasts.push_back({record.snapshot.elapsed_ns, record.decision.prices.front().rest});
  }
  machine_.steps.set_drafts(drafts);
  GenerationReview found =
      taper::review(make_trace(work, outcomes), made, degrees_, chain_, machine_, consult_ns_);
  found.predicted_ns = found.replayed_ns * scale / kRatioOne;
  return found;
}

}  // namespace taper
