// SPDX-License-Identifier: Apache-2.0
#include "pricing/PlanTable.hpp"

#include "base/Text.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

std::string row(const PlannedPlacement& p, const PlannedPlacement* flat) {
  std::string line = format_text("%12s %11.3f", p.name.c_str(), seconds_of(p.iteration_ns));
  line += flat == nullptr ? format_text(" %8s", "")
                          : format_text(" %7.2fx", static_cast<double>(flat->iteration_ns) /
                                                       static_cast<double>(p.iteration_ns));
  line += format_text(" %8.2f", static_cast<double>(p.rank_bytes) / kGiB);
  line += p.measured_s ? format_text(" %11.3f %+6.1f %%", *p.measured_s,
                                     100 * (seconds_of(p.iteration_ns) / *p.measured_s - 1))
                       : format_text(" %11s %8s", "", "");
  return line + "  " + p.text() + "\n";
}

}  // namespace

std::string to_table(const PlannedPlacements& plans) {
  const PlannedPlacement* flat = plans.flattening();
  std::string out = format_text("%12s %11s %8s %8s %11s %8s  %s\n", "placement", "predicted, s",
                                "faster", "GiB", "measured, s", "error", "models");
  for (const PlannedPlacement& p : plans.strategies) out += row(p, flat);
  for (const PlannedPlacement& p : plans.found) out += row(p, flat);
  if (!plans.found.empty()) {
    out += "\nan iteration of the best placement, s:\n";
    for (const PlayedCall& call : plans.found.front().calls)
      out += format_text("%12s  ranks %-9s %8.3f to %8.3f\n", call.model.c_str(),
                         to_string(call.layout).c_str(), seconds_of(call.begin_ns),
                         seconds_of(call.end_ns));
    out += format_text("%12s  %27.3f\n", "publish", seconds_of(plans.found.front().published_ns));
  }
  out += format_text("\n%lld placements examined in %.2f s%s\n",
                     static_cast<long long>(plans.examined), plans.seconds,
                     plans.is_exhaustive ? ", all that there are" : "");
  return out;
}

std::string to_json_lines(const PlannedPlacements& plans) {
  std::string lines;
  for (const auto* list : {&plans.strategies, &plans.found})
    for (const PlannedPlacement& p : *list) {
      OrderedJson json{{"name", p.name},
                       {"predicted_s", seconds_of(p.iteration_ns)},
                       {"publish_s", seconds_of(p.published_ns)},
                       {"rank_bytes", p.rank_bytes}};
      if (p.measured_s) json["measured_s"] = *p.measured_s;
      for (const auto& [name, value] : p.settings) json["settings"][name] = value;
      for (const PlayedCall& call : p.calls)
        json["calls"].push_back({{"model", call.model},
                                 {"layout", to_string(call.layout)},
                                 {"begin_s", seconds_of(call.begin_ns)},
                                 {"end_s", seconds_of(call.end_ns)}});
      lines += json.dump() + "\n";
    }
  return lines;
}

}  // namespace taper
