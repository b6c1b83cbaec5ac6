// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationRecord.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/Text.hpp"

namespace taper {
namespace {

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

double count(std::int64_t value) {
  return static_cast<double>(value);
}

void add_range(MetricValues& row, const std::string& name, const PriceRange& range) {
  row.emplace_back(name + "_mean_s", seconds(range.mean));
  row.emplace_back(name + "_low_s", seconds(range.low));
  row.emplace_back(name + "_high_s", seconds(range.high));
}

MetricValues consultation_row(const ConsultationRecord& record) {
  const Snapshot& s = record.snapshot;
  std::int64_t waiting = 0, context = 0, longest = 0;
  for (const ReplicaSnapshot& r : s.replicas) {
    waiting += r.waiting;
    context += r.context;
    longest = std::max<std::int64_t>(longest, r.longest);
  }
  MetricValues row{{"consultation", count(s.consultation)},
                   {"elapsed_s", seconds(s.elapsed_ns)},
                   {"epoch", count(s.epoch)},
                   {"layout", layout_code(s.layout)},
                   {"alive", count(s.alive())},
                   {"waiting", count(waiting)},
                   {"finished", count(s.finished())},
                   {"context", count(context)},
                   {"longest", count(longest)},
                   {"act", record.decision.act ? 1.0 : 0.0},
                   {"plan_layout", layout_code(record.decision.plan.layout)},
                   {"plan_start", count(static_cast<std::int64_t>(record.decision.plan.start))},
                   {"plan_argument", count(record.decision.plan.argument)},
                   {"plan_repack", record.decision.plan.repack ? 1.0 : 0.0},
                   {"candidates", count(static_cast<std::int64_t>(record.decision.prices.size()))}};
  PriceRange saving{};
  std::int64_t cost = 0;
  for (const Price& price : record.decision.prices)
    if (price.plan == record.decision.plan) {
      saving = price.saving;
      cost = price.cost_ns;
    }
  add_range(row, "saving", saving);
  row.emplace_back("cost_s", seconds(cost));
  return row;
}

MetricValues price_row(const ConsultationRecord& record, const Price& price) {
  MetricValues row{{"consultation", count(record.snapshot.consultation)},
                   {"layout", layout_code(price.plan.layout)},
                   {"start", count(static_cast<std::int64_t>(price.plan.start))},
                   {"argument", count(price.plan.argument)},
                   {"repack", price.plan.repack ? 1.0 : 0.0},
                   {"chosen", price.plan == record.decision.plan ? 1.0 : 0.0},
                   {"cost_s", seconds(price.cost_ns)}};
  add_range(row, "rest", price.rest);
  add_range(row, "saving", price.saving);
  return row;
}

MetricValues switch_row(const SwitchRecord& s) {
  const SwitchParts& cost = s.confirmation.cost;
  std::int64_t moved = 0, recomputed = 0;
  for (const SequenceMove& move : s.confirmation.moves) {
    moved += move.kv == KvAction::kMove ? 1 : 0;
    recomputed += move.kv == KvAction::kRecompute ? 1 : 0;
  }
  MetricValues row{{"at_s", s.at_s},
                   {"from", layout_code(s.before)},
                   {"to", layout_code(s.plan.layout)},
                   {"repack", s.plan.repack ? 1.0 : 0.0},
                   {"confirmed", s.confirmation.act ? 1.0 : 0.0},
                   {"done", s.report.done ? 1.0 : 0.0},
                   {"sequences", count(s.sequences)},
                   {"sequences_moved", count(moved)},
                   {"sequences_recomputed", count(recomputed)},
                   {"time_s", s.seconds},
                   {"meeting_s", s.meeting_s},
                   {"kv_s", s.report.kv_s},
                   {"lists_s", s.report.lists_s},
                   {"rebind_s", s.report.rebind_s},
                   {"kv_bytes_planned", count(s.report.bytes_planned)},
                   {"kv_bytes_sent", count(s.report.bytes_sent)},
                   {"kv_bytes_received", count(s.report.bytes_received)},
                   {"positions_recomputed", count(s.report.positions_recomputed)},
                   {"extra_bytes", count(s.report.extra_bytes)},
                   {"predicted_s", seconds(cost.total())},
                   {"predicted_rendezvous_s", seconds(cost.rendezvous)},
                   {"predicted_groups_s", seconds(cost.groups)},
                   {"predicted_weights_s", seconds(cost.weights)},
                   {"predicted_graphs_s", seconds(cost.graphs)},
                   {"predicted_move_s", seconds(cost.move)},
                   {"predicted_recompute_s", seconds(cost.recompute)},
                   {"predicted_kv_bytes", count(cost.kv_bytes)}};
  add_range(row, "saving", s.confirmation.saving);
  return row;
}

// What the generation was worth, told by its true lengths, and how the forecasts of its end did.
MetricValues account_row(const GenerationReport& report) {
  const GenerationReview& r = *report.review;
  const std::int64_t best = *std::min_element(r.static_ns.begin(), r.static_ns.end());
  double lost = 0, lost_s = 0, forecasts = 0, below_low = 0, below_mean = 0, below_high = 0;
  for (const std::int64_t saved : r.saved_ns)
    if (saved < 0) {
      lost += 1;
      lost_s -= seconds(saved);
    }
  // A forecast of staying can be held against the end only where nothing changed after it.
  for (const ConsultationRecord& c : report.decisions) {
    if (c.decision.prices.empty() || c.snapshot.layout != report.last_layout) continue;
    const PriceRange& rest = c.decision.prices.front().rest;
    const double end = report.seconds - seconds(c.snapshot.elapsed_ns);
    forecasts += 1;
    below_low += end < seconds(rest.low) ? 1 : 0;
    below_mean += end < seconds(rest.mean) ? 1 : 0;
    below_high += end < seconds(rest.high) ? 1 : 0;
  }
  MetricValues row{{"measured_s", report.seconds},
                   {"replayed_s", seconds(r.replayed_ns)},
                   {"predicted_s", seconds(r.predicted_ns)},
                   {"stayed_s", seconds(r.stayed_ns)},
                   {"best_static_s", seconds(best)},
                   {"oracle_s", seconds(r.oracle_ns)},
                   {"switches", count(static_cast<std::int64_t>(r.saved_ns.size()))},
                   {"false_triggers", lost},
                   {"false_loss_s", lost_s},
                   {"forecasts", forecasts},
                   {"below_low", below_low},
                   {"below_mean", below_mean},
                   {"below_high", below_high}};
  for (std::size_t i = 0; i < r.static_ns.size(); ++i)
    row.emplace_back("static_tp" + std::to_string(r.degrees[i]) + "_s", seconds(r.static_ns[i]));
  return row;
}

}  // namespace

double layout_code(const Layout& layout) {
  int largest = 0;
  for (const LayoutGroup& group : layout.groups()) largest = std::max(largest, group.tp);
  if (largest > 9 || layout.replicas() > 15) return -(1e6 * largest + layout.replicas());
  double code = 0;
  for (const LayoutGroup& group : layout.groups()) code = 10 * code + group.tp;
  return code;
}

MetricValues adaptive_metrics(std::span<const GenerationReport> reports) {
  double switches = 0, time = 0, bytes = 0, recomputed = 0, extra = 0, consulted = 0, asking = 0;
  for (const GenerationReport& report : reports) {
    consulted += count(report.consultations);
    asking += report.consultation_s;
    for (const SwitchRecord& s : report.switches) {
      switches += s.report.done ? 1 : 0;
      time += s.seconds;
      bytes += count(s.report.bytes_planned);
      recomputed += count(s.report.positions_recomputed);
      extra = std::max(extra, count(s.report.extra_bytes));
    }
  }
  return {{"adaptive/switches", switches},
          {"adaptive/switch_time_s", time},
          {"adaptive/consultations", consulted},
          {"adaptive/consult_time_s", asking},
          {"adaptive/kv_bytes_moved", bytes},
          {"adaptive/positions_recomputed", recomputed},
          {"adaptive/extra_bytes", extra},
          {"adaptive/first_layout", layout_code(reports.front().first_layout)},
          {"adaptive/last_layout", layout_code(reports.back().last_layout)}};
}

void add_generations(RunFile& file, std::int64_t iteration,
                     std::span<const GenerationReport> reports) {
  std::int64_t number = 0;
  const auto add = [&](const char* table, MetricValues row) {
    row.insert(row.begin(), {"generation", count(number)});
    file.add_record(table, iteration, row);
  };
  for (const GenerationReport& report : reports) {
    for (const ConsultationRecord& record : report.decisions) {
      add("layout_consultations", consultation_row(record));
      for (const Price& price : record.decision.prices)
        add("layout_prices", price_row(record, price));
    }
    for (const SwitchRecord& s : report.switches) add("layout_switches", switch_row(s));
    if (report.review) add("layout_accounts", account_row(report));
    ++number;
  }
}

std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < samples.size(); ++i)
    outcomes.push_back({static_cast<std::int64_t>(i), samples[i].prompt_tokens,
                        samples[i].response_tokens, samples[i].finish == FinishReason::kAbort});
  return outcomes;
}

std::string summary(const GenerationReport& report) {
  std::string text = "layout " + to_string(report.first_layout);
  char line[200];
  for (const SwitchRecord& s : report.switches) {
    if (!s.report.done) continue;
    std::snprintf(line, sizeof line, ", %s at %.2f s (%s, %s moved, %.1f ms)",
                  to_string(s.plan.layout).c_str(), s.at_s,
                  count_text(s.sequences, "sequence").c_str(),
                  format_bytes(count(s.report.bytes_planned)).c_str(), 1e3 * s.seconds);
    text += line;
  }
  std::snprintf(line, sizeof line, "; %s and the first choice, %.2f ms",
                count_text(report.consultations, "consultation").c_str(),
                1e3 * report.consultation_s);
  return text + line;
}

}  // namespace taper
