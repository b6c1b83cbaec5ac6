// SPDX-License-Identifier: Apache-2.0
//
// Columns of the layout_... tables of a run file, as of rollout/GenerationRecord.cpp.
#include "results/FileSchema.hpp"

namespace taper {
namespace {

using Columns = std::vector<MetricMeaning>;

// Of all these tables.
MetricMeaning generation_column() {
  return {"generation", "1", "number of the generation in the iteration, from 0"};
}

void add_range(Columns& columns, const std::string& name, const std::string& description) {
  columns.push_back({name + "_mean_s", "s", description + ", expected"});
  columns.push_back({name + "_low_s", "s", description + ", low quantile"});
  columns.push_back({name + "_high_s", "s", description + ", high quantile"});
}

Columns consultation_columns() {
  Columns columns{
      generation_column(),
      {"consultation", "1", "its number in the generation"},
      {"elapsed_s", "s", "since the start of the generation"},
      {"epoch", "1", "changes of layout before"},
      {"layout", "1", "the layout, as a code"},
      {"alive", "1", "sequences without an end yet, waiting ones included"},
      {"waiting", "1", "sequences without a slot"},
      {"finished", "1", "sequences that have ended"},
      {"context", "1", "summed context lengths of the running ones, tokens"},
      {"longest", "1", "the longest context, tokens"},
      {"act", "1", "1: change the layout now, after a meeting"},
      {"plan_layout", "1", "layout of the chosen plan, as a code"},
      {"plan_start", "1", "when the plan changes: 0 now, 2 below"},
      {"plan_argument", "1", "after how many consultations, or below how many sequences"},
      {"plan_repack", "1", "1: sequences are dealt out anew"},
      {"candidates", "1", "plans that were priced"}};
  add_range(columns, "saving", "what the chosen plan saves against staying");
  columns.push_back({"cost_s", "s", "predicted cost of the chosen plan's change"});
  return columns;
}

Columns price_columns() {
  Columns columns{generation_column(),
                  {"consultation", "1", "its number in the generation"},
                  {"layout", "1", "layout of the plan, as a code"},
                  {"start", "1", "when the plan changes: 0 now, 2 below"},
                  {"argument", "1", "after how many consultations, or below how many sequences"},
                  {"repack", "1", "1: sequences are dealt out anew"},
                  {"chosen", "1", "1: this is the chosen plan"},
                  {"cost_s", "s", "predicted cost of the change"}};
  add_range(columns, "rest", "rest of the generation under the plan");
  add_range(columns, "saving", "what the plan saves against staying");
  return columns;
}

Columns switch_columns() {
  Columns columns{generation_column(),
                  {"at_s", "s", "since the start of the generation"},
                  {"from", "1", "layout before, as a code"},
                  {"to", "1", "layout after, as a code"},
                  {"repack", "1", "1: sequences were dealt out anew"},
                  {"confirmed", "1", "1: still worth it when all ranks had met"},
                  {"done", "1", "1: carried out"},
                  {"sequences", "1", "running then"},
                  {"sequences_moved", "1", "whose keys and values were sent"},
                  {"sequences_recomputed", "1", "whose keys and values were computed again"},
                  {"time_s", "s", "measured time on rank 0"},
                  {"meeting_s", "s", "part of it: meeting of the ranks"},
                  {"kv_s", "s", "part of it: keys and values"},
                  {"lists_s", "s", "part of it: lists of sequences"},
                  {"rebind_s", "s", "part of it: weights and cache of the new layout"},
                  {"kv_bytes_planned", "byte", "keys and values to send, all ranks"},
                  {"kv_bytes_sent", "byte", "keys and values that rank 0 sent"},
                  {"kv_bytes_received", "byte", "keys and values that rank 0 received"},
                  {"positions_recomputed", "1", "positions computed again"},
                  {"extra_bytes", "byte", "most memory beyond the plan that it took on rank 0"},
                  {"predicted_s", "s", "predicted time"},
                  {"predicted_rendezvous_s", "s", "part of it: meeting of the ranks"},
                  {"predicted_groups_s", "s", "part of it: groups of ranks"},
                  {"predicted_weights_s", "s", "part of it: weights"},
                  {"predicted_graphs_s", "s", "part of it: captured graphs"},
                  {"predicted_move_s", "s", "part of it: sending keys and values"},
                  {"predicted_recompute_s", "s", "part of it: computing keys and values again"},
                  {"predicted_kv_bytes", "byte", "keys and values to send, predicted"}};
  add_range(columns, "saving", "what the change saves against staying");
  return columns;
}

Columns account_columns() {
  return {generation_column(),
          {"measured_s", "s", "time of the generation"},
          {"replayed_s", "s", "the same replayed, with the changes that were made"},
          {"predicted_s", "s",
           "that, by as much slower than the profile as the generations before it were"},
          {"stayed_s", "s", "replayed in its first layout"},
          {"best_static_s", "s", "replayed in the best uniform layout"},
          {"oracle_s", "s", "replayed by the best plan with at most two changes"},
          {"switches", "1", "changes that were made"},
          {"false_triggers", "1", "changes that lost time"},
          {"false_loss_s", "s", "what these lost"},
          {"forecasts", "1", "forecasts of the end that can be held against it"},
          {"below_low", "1", "ends that came before the low quantile"},
          {"below_mean", "1", "ends that came before the expected time"},
          {"below_high", "1", "ends that came before the high quantile"},
          {"static_tp<N>_s", "s", "replayed in the uniform layout of degree N"}};
}

}  // namespace

const std::vector<RecordTable>& layout_tables() {
  static const std::vector<RecordTable> tables{
      {"layout_consultations", "a snapshot and what was decided on it", consultation_columns()},
      {"layout_prices", "the price of a candidate", price_columns()},
      {"layout_switches", "a change that the leaders agreed upon", switch_columns()},
      {"layout_accounts", "a generation, replayed with its true lengths in the profiled step times",
       account_columns()}};
  return tables;
}

}  // namespace taper
