// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReport.hpp"

#include <algorithm>
#include <cstdio>

#include "base/Text.hpp"

namespace taper {

std::string summary(const GenerationReport& report) {
  std::string text = "layout " + to_string(report.first_layout);
  char line[200];
  for (const SwitchRecord& s : report.switches) {
    if (!s.report.done) continue;
    std::snprintf(
        line, sizeof line, ", %s at %.2f s (%s, %s moved, %.1f ms)",
        to_string(s.plan.layout).c_str(), s.at_s, count_text(s.sequences, "sequence").c_str(),
        format_bytes(static_cast<double>(s.report.bytes_planned)).c_str(), 1e3 * s.seconds);
    text += line;
  }
  std::snprintf(line, sizeof line, "; %s and the first choice, %.2f ms",
                count_text(report.consultations, "consultation").c_str(),
                1e3 * report.consultation_s);
  return text + line;
}

void DecodeTotals::add(const DecodeTotals& other) {
  steps += other.steps;
  sequences += other.sequences;
  drafted += other.drafted;
  accepted += other.accepted;
  ns += other.ns;
  model_ns += other.model_ns;
}

double DecodeTotals::tokens_per_step() const {
  return sequences == 0 ? 1.0
                        : 1.0 + static_cast<double>(accepted) / static_cast<double>(sequences);
}

double DecodeTotals::acceptance() const {
  return drafted == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(drafted);
}

std::uint16_t DecodeTotals::model_share() const {
  return clamped<std::uint16_t>(model_ns * kRatioOne / std::max<std::int64_t>(1, ns - model_ns));
}

void SpeculationFigures::add(const StepReport& step, std::int64_t ns, std::int64_t model_ns) {
  batches[length_bucket(step.decode_rows)].add(
      {1, step.decode_rows, step.drafted_rows, step.accepted, ns, model_ns});
}

DecodeTotals SpeculationFigures::total() const {
  DecodeTotals all;
  for (const DecodeTotals& t : batches) all.add(t);
  return all;
}

static_assert(sizeof(SpeculationFigures::Words) == sizeof(SpeculationFigures));

std::string summary(const DecodeTotals& totals) {
  char line[120];
  std::snprintf(line, sizeof line, "%.2f tokens per sequence and step, %.0f %% of %s right",
                totals.tokens_per_step(), 100 * totals.acceptance(),
                count_text(totals.drafted, "drafted token").c_str());
  return line;
}

}  // namespace taper
