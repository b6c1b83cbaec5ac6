// SPDX-License-Identifier: Apache-2.0
//
// Columns of the tables of a run file that have rows for generations, as of
// rollout/GenerationRecord.cpp and rollout/RoundReport.cpp.
#include "results/FileSchema.hpp"

namespace taper {
namespace {

using Columns = std::vector<ColumnRule>;
using enum StoredType;

// The column that all tables of generations begin with.
ColumnRule generation_column() {
  return {"generation", kI64, "1", "number of the generation in the iteration, from 0"};
}

// As planner/Plan.hpp has it.
void add_range(Columns& columns, const std::string& name, const std::string& description) {
  columns.push_back({name + "_mean_s", kF64, "s", description + ", mean"});
  columns.push_back({name + "_low_s", kF64, "s", description + ", 10 % quantile"});
  columns.push_back({name + "_high_s", kF64, "s", description + ", 90 % quantile"});
}

ColumnRule start_column(const std::string& prefix) {
  return {prefix + "start", kI64, "1",
          "when the plan takes effect: 0 now, 2 as soon as at most " + prefix +
              "argument sequences are left (no other values)"};
}

ColumnRule argument_column(const std::string& prefix) {
  return {prefix + "argument", kI64, "1",
          "number of sequences if " + prefix + "start is 2, else 0"};
}

Columns consultation_columns() {
  Columns columns{
      generation_column(),
      {"consultation", kI64, "1", "number of the consultation in the generation"},
      {"elapsed_s", kF64, "s", "time since the start of the generation"},
      {"epoch", kI64, "1", "changes of layout so far in the generation"},
      {"layout", kText, "1", "present layout, for example 2x1 or 4+2+2"},
      {"alive", kI64, "1", "sequences that have not ended, including waiting ones"},
      {"waiting", kI64, "1", "sequences that wait for a slot"},
      {"finished", kI64, "1", "sequences that have ended"},
      {"context", kI64, "1", "sum of the context lengths of the running sequences, in tokens"},
      {"longest", kI64, "1", "longest context, in tokens"},
      {"act", kI64, "1", "1: the layout is to change now, after a meeting"},
      {"plan_layout", kText, "1", "layout of the chosen plan"},
      start_column("plan_"),
      argument_column("plan_"),
      {"plan_repack", kI64, "1", "1: the plan redistributes the sequences over the replicas"},
      {"candidates", kI64, "1", "number of plans that were priced"}};
  add_range(columns, "saving", "time that the chosen plan saves compared with staying");
  columns.push_back({"cost_s", kF64, "s", "predicted time of the chosen plan's change"});
  return columns;
}

Columns price_columns() {
  Columns columns{
      generation_column(),
      {"consultation", kI64, "1", "number of the consultation in the generation"},
      {"layout", kText, "1", "layout of the plan"},
      start_column(""),
      argument_column(""),
      {"repack", kI64, "1", "1: the plan redistributes the sequences over the replicas"},
      {"chosen", kI64, "1", "1: the plan was chosen"},
      {"cost_s", kF64, "s", "predicted time of the change"}};
  add_range(columns, "rest", "time to the end of the generation under the plan");
  add_range(columns, "saving", "time that the plan saves compared with staying");
  return columns;
}

Columns switch_columns() {
  Columns columns{
      generation_column(),
      {"at_s", kF64, "s", "time since the start of the generation"},
      {"from", kText, "1", "layout before"},
      {"to", kText, "1", "layout after"},
      {"repack", kI64, "1", "1: sequences were redistributed over the replicas"},
      {"confirmed", kI64, "1", "1: the saving was confirmed when all ranks had met"},
      {"done", kI64, "1", "1: the change was carried out"},
      {"sequences", kI64, "1", "sequences that were running"},
      {"sequences_moved", kI64, "1", "sequences whose keys and values were sent"},
      {"sequences_recomputed", kI64, "1", "sequences whose keys and values were recomputed"},
      {"time_s", kF64, "s", "measured time of the change on rank 0"},
      {"meeting_s", kF64, "s",
       "part of time_s: meeting of the ranks, waiting for the last one included"},
      {"kv_s", kF64, "s", "part of time_s: moving keys and values"},
      {"lists_s", kF64, "s", "part of time_s: lists of sequences"},
      {"rebind_s", kF64, "s", "part of time_s: weights and cache of the new layout"},
      {"kv_bytes_planned", kI64, "byte", "keys and values to send, of all ranks"},
      {"kv_bytes_sent", kI64, "byte", "keys and values that rank 0 sent"},
      {"kv_bytes_received", kI64, "byte", "keys and values that rank 0 received"},
      {"positions_recomputed", kI64, "1", "positions whose keys and values were recomputed"},
      {"extra_bytes", kI64, "byte",
       "largest memory beyond the plan that the change used on rank 0"},
      {"predicted_s", kF64, "s", "predicted time of the change"},
      {"predicted_rendezvous_s", kF64, "s",
       "part of predicted_s: meeting of the ranks, waiting for the last one included"},
      {"predicted_groups_s", kF64, "s", "part of predicted_s: groups of ranks"},
      {"predicted_weights_s", kF64, "s", "part of predicted_s: weights"},
      {"predicted_graphs_s", kF64, "s", "part of predicted_s: captured graphs"},
      {"predicted_move_s", kF64, "s", "part of predicted_s: sending keys and values"},
      {"predicted_recompute_s", kF64, "s", "part of predicted_s: recomputing keys and values"},
      {"predicted_kv_bytes", kI64, "byte", "predicted keys and values to send"}};
  add_range(columns, "saving",
            "time that the change saves compared with staying, predicted at the meeting");
  return columns;
}

Columns generation_columns() {
  return {generation_column(),
          {"first_layout", kText, "1", "layout at its start, for example 2x1 or 4+2+2"},
          {"last_layout", kText, "1", "layout at its end"}};
}

Columns account_columns() {
  return {
      generation_column(),
      {"measured_s", kF64, "s", "measured time of the generation"},
      {"replayed_s", kF64, "s", "replayed with the changes that were made"},
      {"predicted_s", kF64, "s",
       "replayed_s, times the moving average of measured_s / replayed_s of earlier generations"},
      {"stayed_s", kF64, "s", "replayed in its first layout, without changes"},
      {"best_static_s", kF64, "s", "replayed in the best uniform layout"},
      {"oracle_s", kF64, "s",
       "replayed with the best plan of at most two changes among uniform layouts"},
      {"switches", kI64, "1", "changes that were made"},
      {"false_triggers", kI64, "1", "changes that lost time in the replay"},
      {"false_loss_s", kF64, "s", "time that these changes lost"},
      {"forecasts", kI64, "1",
       "forecasts of the end; it is replayed without the changes that came after, times "
       "measured_s / replayed_s"},
      {"below_low", kI64, "1", "forecasts whose 10 % quantile was later than the end"},
      {"below_mean", kI64, "1", "forecasts whose mean was later than the end"},
      {"below_high", kI64, "1", "forecasts whose 90 % quantile was later than the end"},
      {"static_tp<N>_s", kF64, "s", "replayed in the uniform layout of degree N"}};
}

Columns draft_columns(Columns first) {
  first.insert(first.begin(), generation_column());
  first.push_back({"drafted", kI64, "token", "tokens that were guessed"});
  first.push_back({"accepted", kI64, "token", "guesses that were right, and so were kept"});
  return first;
}

Columns draft_batch_columns() {
  Columns columns = draft_columns(
      {{"least_batch", kI64, "1", "sequences in a step, from this number to below its double"},
       {"steps", kI64, "1", "steps that only decoded"},
       {"sequences", kI64, "1", "sequences of these steps, summed"}});
  columns.push_back({"time_s", kF64, "s", "time of these steps"});
  columns.push_back({"model_s", kF64, "s",
                     "of this, time of the draft model, or of early exits for tokens of a draft "
                     "after the first"});
  return columns;
}

Columns draft_source_columns() {
  return draft_columns(
      {{"source", kText, "1",
        "self: the sequence itself, prompt: other responses to the prompt, run: "
        "any response, model: the draft model or the early exits, journal: the same "
        "generation, interrupted"}});
}

Columns round_columns() {
  return {generation_column(),
          {"kind", kText, "1",
           "short: prompts that were not put off; long: prompts that were; plain: "
           "nothing can be put off yet"},
          {"prompts", kI64, "1", "prompts started"},
          {"responses", kI64, "1", "responses started"},
          {"kept", kI64, "1", "responses that were kept"},
          {"aborted", kI64, "1", "responses that were given up on the way"},
          {"tokens", kI64, "1", "tokens of all responses"},
          {"unkept_tokens", kI64, "1", "of these, of responses that were not kept"},
          {"longest_kept", kI64, "1", "length of the longest response that was kept, in tokens"},
          {"waiting", kI64, "1", "prompts that wait for a long round, after this one"}};
}

Columns call_columns() {
  return {
      {"call", kText, "1",
       "gen, reward_model, ref, values, update_critic or update_actor: as the phases of these "
       "names"},
      {"model", kText, "1", "policy, critic, reference, or the name of a reward"},
      {"first_rank", kI64, "1", "first rank of the model"},
      {"ranks", kI64, "1", "ranks of the model, from the first on"},
      {"tp", kI64, "1", "tensor-parallel degree; of gen the smallest of the generation"},
      {"dp", kI64, "1", "replicas"},
      {"start_s", kF64, "s", "since the begin of the iteration, when its first rank began"},
      {"end_s", kF64, "s", "the same, when its last rank ended"},
      {"busy_s", kF64, "s", "time that a rank was at it, mean over its ranks"},
      {"wait_s", kF64, "s",
       "of that, inside of collectives of its ranks: communication, and waiting for the slowest"}};
}

Columns balance_columns() {
  return {{"rank", kI64, "1", "rank of the job"},
          {"speed", kF64, "1", "rows per second in training against the median of the ranks"},
          {"rows", kI64, "1", "tokens that it trained in the iteration"},
          {"busy_s", kF64, "s", "time that it worked at them, outside of collectives"}};
}

}  // namespace

const std::vector<RecordTable>& generation_tables() {
  static const std::vector<RecordTable> tables{
      {"layout_generations", "one row per generation", generation_columns()},
      {"layout_consultations", "one row per consultation, a snapshot and the decision on it",
       consultation_columns()},
      {"layout_prices", "one row per plan that a consultation has priced", price_columns()},
      {"layout_switches", "one row per change of layout on which the leaders agreed",
       switch_columns()},
      {"layout_accounts",
       "one row per generation, replayed with its true lengths and the step times of the profile",
       account_columns()},
      {"draft_batches", "one row per generation and size of batch, of all replicas",
       draft_batch_columns()},
      {"draft_sources", "one row per generation and source of drafts, of all replicas",
       draft_source_columns()},
      {"rounds", "one row per generation with rounds of tail batching", round_columns()},
      {"calls", "one row per piece of work of a model, if models are on different ranks",
       call_columns()},
      {"balance", "one row per rank that is slower than others, if ranks are compared",
       balance_columns()}};
  return tables;
}

}  // namespace taper
