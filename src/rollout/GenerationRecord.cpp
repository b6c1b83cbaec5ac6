// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationRecord.hpp"

#include <algorithm>
#include <cmath>

#include "base/Text.hpp"

namespace taper {
namespace {

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

double count(std::int64_t value) {
  return static_cast<double>(value);
}

void add_range(RecordRow& row, const std::string& name, const PriceRange& range) {
  row.emplace_back(name + "_mean_s", seconds(range.mean));
  row.emplace_back(name + "_low_s", seconds(range.low));
  row.emplace_back(name + "_high_s", seconds(range.high));
}

RecordRow generation_row(const GenerationReport& report) {
  return {{"first_layout", to_string(report.first_layout)},
          {"last_layout", to_string(report.last_layout)}};
}

RecordRow consultation_row(const ConsultationRecord& record) {
  const Snapshot& s = record.snapshot;
  std::int64_t waiting = 0, context = 0, longest = 0;
  for (const ReplicaSnapshot& r : s.replicas) {
    waiting += r.waiting;
    context += r.context;
    longest = std::max<std::int64_t>(longest, r.longest);
  }
  RecordRow row{{"consultation", s.consultation},
                {"elapsed_s", seconds(s.elapsed_ns)},
                {"epoch", s.epoch},
                {"layout", to_string(s.layout)},
                {"alive", s.alive()},
                {"waiting", waiting},
                {"finished", s.finished()},
                {"context", context},
                {"longest", longest},
                {"act", record.decision.act},
                {"plan_layout", to_string(record.decision.plan.layout)},
                {"plan_start", static_cast<std::int64_t>(record.decision.plan.start)},
                {"plan_argument", record.decision.plan.argument},
                {"plan_repack", record.decision.plan.repack == Repack::kYes},
                {"candidates", std::ssize(record.decision.prices)}};
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

RecordRow price_row(const ConsultationRecord& record, const Price& price) {
  RecordRow row{{"consultation", record.snapshot.consultation},
                {"layout", to_string(price.plan.layout)},
                {"start", static_cast<std::int64_t>(price.plan.start)},
                {"argument", price.plan.argument},
                {"repack", price.plan.repack == Repack::kYes},
                {"chosen", price.plan == record.decision.plan},
                {"cost_s", seconds(price.cost_ns)}};
  add_range(row, "rest", price.rest);
  add_range(row, "saving", price.saving);
  return row;
}

RecordRow switch_row(const SwitchRecord& s) {
  const SwitchParts& cost = s.confirmation.cost;
  std::int64_t moved = 0, recomputed = 0;
  for (const SequenceMove& move : s.confirmation.moves) {
    moved += move.kv == KvAction::kMove ? 1 : 0;
    recomputed += move.kv == KvAction::kRecompute ? 1 : 0;
  }
  RecordRow row{{"at_s", s.at_s},
                {"from", to_string(s.before)},
                {"to", to_string(s.plan.layout)},
                {"repack", s.plan.repack == Repack::kYes},
                {"confirmed", s.confirmation.act},
                {"done", s.report.done},
                {"sequences", s.sequences},
                {"sequences_moved", moved},
                {"sequences_recomputed", recomputed},
                {"time_s", s.seconds},
                {"meeting_s", s.meeting_s},
                {"kv_s", s.report.kv_s},
                {"lists_s", s.report.lists_s},
                {"rebind_s", s.report.rebind_s},
                {"kv_bytes_planned", s.report.bytes_planned},
                {"kv_bytes_sent", s.report.bytes_sent},
                {"kv_bytes_received", s.report.bytes_received},
                {"positions_recomputed", s.report.positions_recomputed},
                {"extra_bytes", s.report.extra_bytes},
                {"predicted_s", seconds(cost.total())},
                {"predicted_rendezvous_s", seconds(cost.rendezvous)},
                {"predicted_groups_s", seconds(cost.groups)},
                {"predicted_weights_s", seconds(cost.weights)},
                {"predicted_graphs_s", seconds(cost.graphs)},
                {"predicted_move_s", seconds(cost.move)},
                {"predicted_recompute_s", seconds(cost.recompute)},
                {"predicted_kv_bytes", cost.kv_bytes}};
  add_range(row, "saving", s.confirmation.saving);
  return row;
}

// What the generation was worth, told by its true lengths, and how the forecasts of its end did.
RecordRow account_row(const GenerationReport& report) {
  const GenerationReview& r = *report.review;
  const std::int64_t best = *std::min_element(r.static_ns.begin(), r.static_ns.end());
  std::int64_t lost = 0;
  double lost_s = 0;
  for (const std::int64_t saved : r.saved_ns)
    if (saved < 0) {
      lost += 1;
      lost_s -= seconds(saved);
    }
  RecordRow row{{"measured_s", report.seconds},
                {"replayed_s", seconds(r.replayed_ns)},
                {"predicted_s", seconds(r.predicted_ns)},
                {"stayed_s", seconds(r.stayed_ns)},
                {"best_static_s", seconds(best)},
                {"oracle_s", seconds(r.oracle_ns)},
                {"switches", std::ssize(r.saved_ns)},
                {"false_triggers", lost},
                {"false_loss_s", lost_s},
                {"forecasts", std::int64_t{r.forecasts.count}},
                {"below_low", std::int64_t{r.forecasts.below_low}},
                {"below_mean", std::int64_t{r.forecasts.below_mean}},
                {"below_high", std::int64_t{r.forecasts.below_high}}};
  for (std::size_t i = 0; i < r.static_ns.size(); ++i)
    row.emplace_back("static_tp" + std::to_string(r.degrees[i]) + "_s", seconds(r.static_ns[i]));
  return row;
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
  return {{"adaptive/switches", switches},       {"adaptive/switch_time_s", time},
          {"adaptive/consultations", consulted}, {"adaptive/consult_time_s", asking},
          {"adaptive/kv_bytes_moved", bytes},    {"adaptive/positions_recomputed", recomputed},
          {"adaptive/extra_bytes", extra}};
}

// Generations in which the planner would have changed the layout, had it been allowed to.
double count_advised(std::span<const GenerationReport> reports) {
  return count(std::ranges::count_if(reports, [](const GenerationReport& report) {
    return std::ranges::any_of(report.decisions,
                               [](const ConsultationRecord& c) { return c.decision.pays; });
  }));
}

MetricValues speculation_metrics(std::span<const GenerationReport> reports) {
  DecodeTotals all;
  for (const GenerationReport& report : reports) all.add(report.speculation.total());
  return {{"speculation/tokens_per_step", all.tokens_per_step()},
          {"speculation/drafted", count(all.drafted)},
          {"speculation/accepted", count(all.accepted)},
          {"speculation/acceptance", all.acceptance()}};
}

RecordRow draft_batch_row(std::int64_t least_batch, const DecodeTotals& t) {
  return {{"least_batch", least_batch},    {"steps", t.steps},       {"sequences", t.sequences},
          {"drafted", t.drafted},          {"accepted", t.accepted}, {"time_s", seconds(t.ns)},
          {"model_s", seconds(t.model_ns)}};
}

}  // namespace

MetricValues generation_metrics(const GeneratorOptions& options,
                                std::span<const GenerationReport> reports) {
  MetricValues metrics;
  if (options.may_change_layout()) add(metrics, adaptive_metrics(reports));
  if (options.mode == PlannerMode::kAdvise)
    metrics.emplace_back("adaptive/advised", count_advised(reports));
  if (options.speculation.is_on()) add(metrics, speculation_metrics(reports));
  return metrics;
}

void add_generations(RunFile& file, std::int64_t iteration, const GeneratorOptions& options,
                     std::span<const GenerationReport> reports) {
  std::int64_t number = 0;
  const auto add = [&](const char* table, RecordRow row) {
    row.insert(row.begin(), {"generation", number});
    file.add_record(table, iteration, row);
  };
  const auto add_layouts = [&](const GenerationReport& report) {
    add("layout_generations", generation_row(report));
    for (const ConsultationRecord& record : report.decisions) {
      add("layout_consultations", consultation_row(record));
      for (const Price& price : record.decision.prices)
        add("layout_prices", price_row(record, price));
    }
    for (const SwitchRecord& s : report.switches) add("layout_switches", switch_row(s));
    if (report.review) add("layout_accounts", account_row(report));
  };
  const auto add_drafts = [&](const SpeculationFigures& figures) {
    for (std::size_t i = 0; i < figures.batches.size(); ++i)
      if (figures.batches[i].steps > 0)
        add("draft_batches", draft_batch_row(std::int64_t{1} << i, figures.batches[i]));
    // Sources that there are: a draft model, and a journal that had something, need not be.
    for (std::size_t i = 0; i < figures.sources.size(); ++i) {
      const auto source = static_cast<DraftSource>(i);
      const auto& [drafted, accepted] = figures.sources[i];
      const bool has_model =
          options.speculation.has_draft_model() || options.speculation.has_exits();
      if (source == DraftSource::kModel && !has_model) continue;
      if (source == DraftSource::kJournal && drafted == 0) continue;
      add("draft_sources", {{"source", std::string(to_string(source))},
                            {"drafted", drafted},
                            {"accepted", accepted}});
    }
  };
  for (const GenerationReport& report : reports) {
    if (options.may_change_layout()) add_layouts(report);
    if (options.speculation.is_on()) add_drafts(report.speculation);
    ++number;
  }
}

}  // namespace taper
