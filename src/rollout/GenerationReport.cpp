// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationReport.hpp"

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

std::string summary(const SpeculationFigures& figures) {
  char line[120];
  std::snprintf(line, sizeof line, "%.2f tokens per sequence and step, %.0f %% of %s right",
                figures.tokens_per_step(), 100 * figures.acceptance(),
                count_text(figures.drafted, "drafted token").c_str());
  return line;
}

}  // namespace taper
