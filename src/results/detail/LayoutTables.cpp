// SPDX-License-Identifier: Apache-2.0
//
// Columns of the layout_... tables of a run file, as of rollout/GenerationRecord.cpp.
#include "results/FileSchema.hpp"

namespace taper {
namespace {

using Columns = std::vector<ColumnRule>;
using enum StoredType;

// Of all these tables.
ColumnRule generation_column() {
  return {"generation", kI64, "1", "number of the generation in the iteration, from 0"};
}

void add_range(Columns& columns, const std::string& name, const std::string& description) {
  columns.push_back({name + "_mean_s", kF64, "s", description + ", expected"});
  columns.push_back({name + "_low_s", kF64, "s", description + ", low quantile"});
  columns.push_back({name + "_high_s", kF64, "s", description + ", high quantile"});
}

Columns consultation_columns() {
  Columns columns{
      generation_column(),
      {"consultation", kI64, "1", "its number in the generation"},
      {"elapsed_s", kF64, "s", "since the start of the generation"},
      {"epoch", kI64, "1", "changes of layout before"},
      {"layout", kText, "1", "the layout: 2x1, 4+2+2"},
      {"alive", kI64, "1", "sequences without an end yet, waiting ones included"},
      {"waiting", kI64, "1", "sequences without a slot"},
      {"finished", kI64, "1", "sequences that have ended"},
      {"context", kI64, "1", "summed context lengths of the running ones, tokens"},
      {"longest", kI64, "1", "the longest context, tokens"},
      {"act", kI64, "1", "1: change the layout now, after a meeting"},
      {"plan_layout", kText, "1", "layout of the chosen plan"},
      {"plan_start", kI64, "1", "when the plan changes: 0 now, 2 below"},
      {"plan_argument", kI64, "1", "after how many consultations, or below how many sequences"},
      {"plan_repack", kI64, "1", "1: sequences are dealt out anew"},
      {"candidates", kI64, "1", "plans that were priced"}};
  add_range(columns, "saving", "what the chosen plan saves against staying");
  columns.push_back({"cost_s", kF64, "s", "predicted cost of the chosen plan's change"});
  return columns;
}

Columns price_columns() {
  Columns columns{
      generation_column(),
      {"consultation", kI64, "1", "its number in the generation"},
      {"layout", kText, "1", "layout of the plan"},
      {"start", kI64, "1", "when the plan changes: 0 now, 2 below"},
      {"argument", kI64, "1", "after how many consultations, or below how many sequences"},
      {"repack", kI64, "1", "1: sequences are dealt out anew"},
      {"chosen", kI64, "1", "1: this is the chosen plan"},
      {"cost_s", kF64, "s", "predicted cost of the change"}};
  add_range(columns, "rest", "rest of the generation under the plan");
  add_range(columns, "saving", "what the plan saves against staying");
  return columns;
}

Columns switch_columns() {
  Columns columns{
      generation_column(),
      {"at_s", kF64, "s", "since the start of the generation"},
      {"from", kText, "1", "layout before"},
      {"to", kText, "1", "layout after"},
      {"repack", kI64, "1", "1: sequences were dealt out anew"},
      {"confirmed", kI64, "1", "1: still worth it when all ranks had met"},
      {"done", kI64, "1", "1: carried out"},
      {"sequences", kI64, "1", "running then"},
      {"sequences_moved", kI64, "1", "whose keys and values were sent"},
      {"sequences_recomputed", kI64, "1", "whose keys and values were computed again"},
      {"time_s", kF64, "s", "measured time on rank 0"},
      {"meeting_s", kF64, "s", "part of it: meeting of the ranks"},
      {"kv_s", kF64, "s", "part of it: keys and values"},
      {"lists_s", kF64, "s", "part of it: lists of sequences"},
      {"rebind_s", kF64, "s", "part of it: weights and cache of the new layout"},
      {"kv_bytes_planned", kI64, "byte", "keys and values to send, all ranks"},
      {"kv_bytes_sent", kI64, "byte", "keys and values that rank 0 sent"},
      {"kv_bytes_received", kI64, "byte", "keys and values that rank 0 received"},
      {"positions_recomputed", kI64, "1", "positions computed again"},
      {"extra_bytes", kI64, "byte", "most memory beyond the plan that it took on rank 0"},
      {"predicted_s", kF64, "s", "predicted time"},
      {"predicted_rendezvous_s", kF64, "s", "part of it: meeting of the ranks"},
      {"predicted_groups_s", kF64, "s", "part of it: groups of ranks"},
      {"predicted_weights_s", kF64, "s", "part of it: weights"},
      {"predicted_graphs_s", kF64, "s", "part of it: captured graphs"},
      {"predicted_move_s", kF64, "s", "part of it: sending keys and values"},
      {"predicted_recompute_s", kF64, "s", "part of it: computing keys and values again"},
      {"predicted_kv_bytes", kI64, "byte", "keys and values to send, predicted"}};
  add_range(columns, "saving", "what the change saves against staying");
  return columns;
}

Columns generation_columns() {
  return {generation_column(),
          {"first_layout", kText, "1", "the layout that it started in: 2x1, 4+2+2"},
          {"last_layout", kText, "1", "the layout that it ended in"}};
}

Columns account_columns() {
  return {generation_column(),
          {"measured_s", kF64, "s", "time of the generation"},
          {"replayed_s", kF64, "s", "the same replayed, with the changes that were made"},
          {"predicted_s", kF64, "s",
           "that, by as much slower than the profile as the generations before it were"},
          {"stayed_s", kF64, "s", "replayed in its first layout"},
          {"best_static_s", kF64, "s", "replayed in the best uniform layout"},
          {"oracle_s", kF64, "s", "replayed by the best plan with at most two changes"},
          {"switches", kI64, "1", "changes that were made"},
          {"false_triggers", kI64, "1", "changes that lost time"},
          {"false_loss_s", kF64, "s", "what these lost"},
          {"forecasts", kI64, "1", "forecasts of the end that can be held against it"},
          {"below_low", kI64, "1", "ends that came before the low quantile"},
          {"below_mean", kI64, "1", "ends that came before the expected time"},
          {"below_high", kI64, "1", "ends that came before the high quantile"},
          {"static_tp<N>_s", kF64, "s", "replayed in the uniform layout of degree N"}};
}

}  // namespace

const std::vector<RecordTable>& layout_tables() {
  static const std::vector<RecordTable> tables{
      {"layout_generations", "a generation", generation_columns()},
      {"layout_consultations", "a snapshot and what was decided on it", consultation_columns()},
      {"layout_prices", "the price of a candidate", price_columns()},
      {"layout_switches", "a change that the leaders agreed upon", switch_columns()},
      {"layout_accounts", "a generation, replayed with its true lengths in the profiled step times",
       account_columns()}};
  return tables;
}

}  // namespace taper
