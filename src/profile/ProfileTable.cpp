// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileTable.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "base/Text.hpp"

namespace taper {
namespace {

double percent(std::int64_t millionths) {
  return static_cast<double>(millionths) * 1e-4;
}
double us(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}
double ms(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

// Points of a degree and class, and the range of its decode steps.
struct StepRange {
  int points = 0, decode = 0;
  std::int64_t least = 0, most = 0;  // ns
};

StepRange range_of(const LatencyProfile& p, int tp, PairClass pair) {
  StepRange range;
  for (const StepSample& s : p.steps) {
    if (s.tp != tp || s.pair != pair) continue;
    ++range.points;
    if (s.new_tokens != s.sequences) continue;
    range.least = range.decode == 0 ? s.time_ns : std::min(range.least, s.time_ns);
    range.most = std::max(range.most, s.time_ns);
    ++range.decode;
  }
  return range;
}

}  // namespace

std::string to_table(const LatencyProfile& p) {
  std::ostringstream out;
  out << "  measured: "
      << (p.is_complete()
              ? std::string("complete")
              : "incomplete, " + std::to_string(p.measured_percent) + " % of what was planned")
      << '\n';
  out << "  TP  group       points  decode steps, ms     error % 50/90   noise % 50/90\n";
  for (std::size_t i = 0; i < p.fit_errors.size(); ++i) {
    const FitError& e = p.fit_errors[i];
    const StepRange r = range_of(p, e.tp, e.pair);
    out << format_text("%4d  %-10s %7d  %8.3f - %-9.3f %8.2f /%6.2f", e.tp, to_string(e.pair),
                       r.points, ms(r.least), ms(r.most), percent(e.p50), percent(e.p90));
    if (i < p.repeat_noise.size())
      out << format_text(" %8.2f /%6.2f", percent(p.repeat_noise[i].p50),
                         percent(p.repeat_noise[i].p90));
    out << '\n';
  }
  for (const MoveCost& m : p.moves)
    out << format_text("  moving keys and values, %s: %.1f us and %.2f GB/s\n", to_string(m.pair),
                       us(m.latency_ns), 1e3 / std::max(1.0, static_cast<double>(m.ps_per_byte)));
  for (const RendezvousCost& r : p.rendezvous)
    out << format_text("  rendezvous of %d ranks: %.1f us\n", r.ranks, us(r.ns));
  out << format_text("  groups %.1f us, weights %.1f us, graphs %.1f us\n", us(p.groups_ns),
                     us(p.weights_ns), us(p.graphs_ns));
  return out.str();
}

std::string completeness_problem(const LatencyProfile& p) {
  if (p.is_complete()) return {};
  return "incomplete: the budget ended after " + std::to_string(p.measured_percent) +
         " % of the planned measurements, so layouts would be chosen by rough step times; repeat "
         "the same taper profile command without --budget: it resumes where it stopped";
}

}  // namespace taper
