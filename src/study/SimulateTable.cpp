// SPDX-License-Identifier: Apache-2.0
//
// How `taper simulate` shows what it played.
#include <algorithm>

#include "base/Text.hpp"
#include "io/Json.hpp"
#include "study/SimulateJob.hpp"

namespace taper {
namespace {

constexpr const char* kLegend = R"(
case      the described machine and generation
ranks     devices
static    the best static layout over all generations, and its mean generation time
tok/s     tokens per second and rank over the iteration in that layout, including prompts
one       generation time saved by the stand-in for the published rule, from its best start
ours      the same by Taper's planner
oracle    the same by the best plan of at most two changes among uniform layouts, with known
          lengths; ours may make more changes and use groups of different degrees
myopic    the same by a rule that compares only staying with switching now
switches  changes per generation by Taper's planner
cost      their share of the generation time
it. one   speed-up of the iteration with the stand-in; ours: with Taper's planner
publ.     the published speed-up, and the deviation of the stand-in from it
)";

double share_of(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

std::string layout_of(const SimulatedCase& c, int tp) {
  return std::to_string(tp) + "x" + std::to_string(c.ranks / tp);
}

std::string row(const SimulatedCase& c, int column) {
  const auto percent = [&](std::int64_t ns) { return 100 * c.saved(ns); };
  const std::string oracle =
      c.oracle_ns > 0 ? format_text("%6.1f%%", percent(c.oracle_ns)) : "      -";
  const double deviation = c.published.speed_up > 0
                               ? 100 * (c.speed_up(c.one_switch.time_ns) / c.published.speed_up - 1)
                               : 0;
  const std::string published =
      c.published.speed_up > 0 ? format_text(" %5.2fx %+6.1f%%", c.published.speed_up, deviation)
                               : "      -       -";
  return format_text("%-*s %5d %8s %8.1f s %7.1f %6.1f%% %6.1f%% ", column, c.name.c_str(), c.ranks,
                     layout_of(c, c.degrees[static_cast<std::size_t>(c.best)]).c_str(),
                     static_cast<double>(c.best_ns()) * 1e-9 / c.generations, c.tokens_per_second(),
                     percent(c.one_switch.time_ns), percent(c.adaptive_ns)) +
         oracle +
         format_text(" %6.1f%% %8.2f %6.2f%% %6.2fx %6.2fx", percent(c.myopic_ns),
                     1.0 * c.switches / c.generations,
                     100 * share_of(c.switching_ns, c.adaptive_ns),
                     c.speed_up(c.one_switch.time_ns), c.speed_up(c.adaptive_ns)) +
         published + "\n";
}

// Each static layout, and what the stand-in would save against it.
std::string static_lines(const SimulatedCase& c, int column) {
  std::string text = format_text("%-*s", column, c.name.c_str());
  for (std::size_t k = 0; k < c.degrees.size(); ++k)
    text += format_text("  %s %.1f s (%+.1f%%)", layout_of(c, c.degrees[k]).c_str(),
                        static_cast<double>(c.static_ns[k]) * 1e-9 / c.generations,
                        100 * (1 - share_of(c.one_switch.time_ns, c.static_ns[k])));
  return text + format_text("  it starts in %s, switches %.2f times; ours starts in %s\n",
                            layout_of(c, c.one_switch.first).c_str(),
                            1.0 * c.one_switch.switches / c.generations,
                            layout_of(c, c.first).c_str());
}

}  // namespace

std::string SimulatedSetting::table() const {
  std::vector<std::string> names;
  for (const int tp : degrees) names.push_back(std::to_string(tp));
  return "tensor-parallel degrees " + join(names) +
         format_text(
             "\nat the smallest degree: weights %.1f GB, KV cache %.1f GB per rank\n%lld bytes of "
             "KV per position, %.0f positions per response when most are held\n%s in flight per "
             "rank\n",
             weight_gb, pool_gb, static_cast<long long>(kv_bytes_per_position), peak_positions,
             count_text(slots_per_rank, "sequence").c_str());
}

std::string to_table(const std::vector<SimulatedCase>& cases) {
  std::size_t width = 4;
  for (const SimulatedCase& c : cases) width = std::max(width, c.name.size());
  const int column = static_cast<int>(width);
  std::string table =
      format_text("%-*s %5s %8s %10s %7s %7s %7s %7s %7s %8s %7s %7s %7s %6s\n", column, "case",
                  "ranks", "static", "", "tok/s", "one", "ours", "oracle", "myopic", "switches",
                  "cost", "it. one", "ours", "publ.");
  for (const SimulatedCase& c : cases) table += row(c, column);
  table += kLegend;
  table += "\nstatic layouts, and the saving of the stand-in against each\n";
  for (const SimulatedCase& c : cases) table += static_lines(c, column);
  return table;
}

std::string to_json_lines(const std::vector<SimulatedCase>& cases) {
  std::string text;
  for (const SimulatedCase& c : cases) {
    const OrderedJson line{{"name", c.name},
                           {"ranks", c.ranks},
                           {"generations", c.generations},
                           {"degrees", c.degrees},
                           {"static_ns", c.static_ns},
                           {"best_static", c.degrees[static_cast<std::size_t>(c.best)]},
                           {"one_switch_ns", c.one_switch.time_ns},
                           {"one_switch_first", c.one_switch.first},
                           {"one_switches", c.one_switch.switches},
                           {"adaptive_ns", c.adaptive_ns},
                           {"switches", c.switches},
                           {"switching_ns", c.switching_ns},
                           {"myopic_ns", c.myopic_ns},
                           {"oracle_ns", c.oracle_ns},
                           {"tokens", c.tokens},
                           {"generation_share", c.share},
                           {"tokens_per_second", c.tokens_per_second()},
                           {"published_speed_up", c.published.speed_up}};
    text += line.dump() + "\n";
  }
  return text;
}

}  // namespace taper
