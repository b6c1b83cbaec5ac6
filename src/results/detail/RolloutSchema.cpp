// SPDX-License-Identifier: Apache-2.0
//
// rollouts/iter_NNNNNN.h5, as of RolloutFile.cpp.
#include "results/FileSchema.hpp"

namespace taper {
namespace {

using enum StoredType;

// Sample i has values[offsets[i] .. offsets[i + 1]).
void add_ragged(std::vector<DatasetRule>& list, DatasetRule values) {
  values.is_deflated = true;
  const std::string name = values.name;
  const Presence presence = values.presence;
  values.name += "/values";
  list.push_back(std::move(values));
  list.push_back({name + "/offsets",
                  kI64,
                  {"samples + 1"},
                  "1",
                  "sample i has values[offsets[i] .. offsets[i + 1])",
                  "",
                  presence,
                  Order::kOffsets,
                  true});
}

void add_column(std::vector<DatasetRule>& list, DatasetRule column) {
  column.is_deflated = true;
  list.push_back(std::move(column));
}

// What there is once for each sample.
void add_samples(std::vector<DatasetRule>& d) {
  d.push_back(
      {"/reward_names",
       kText,
       {"components"},
       "1",
       "names of the components of /rewards",
       ": the run's `Rewards`, each followed by its `Components` (`judge/style`); `score` if "
       "the run has only a rule"});
  add_column(d, {"/group",
                 kI64,
                 {"samples"},
                 "1",
                 "number of the prompt in the iteration, from 0",
                 "; the samples of one prompt form a group",
                 Presence::kAlways,
                 Order::kNotDescending});
  add_column(d, {"/stream_index",
                 kI64,
                 {"samples"},
                 "1",
                 "number of the prompt in the run's stream of prompts, from 0",
                 "; not with plain rounds",
                 Presence::kMaybe});
  add_column(d, {"/sample", kI32, {"samples"}, "1", "number of the sample in its group, from 0"});
  add_column(d, {"/prompt_length", kI32, {"samples"}, "token", "length of the prompt"});
  add_column(d, {"/response_length", kI32, {"samples"}, "token", "length of the response"});
  add_column(d, {"/advantage",
                 kF64,
                 {"samples"},
                 "1",
                 "advantage of the sample",
                 ": the mean over its response tokens; 0 if it was dropped"});
  add_column(
      d, {"/finish",
          kI8,
          {"samples"},
          "1",
          "why the response ended: 0 eos, 1 stop, 2 length, 3 abort",
          " (end of sequence; stop string, stop id or prescribed length; length limit; aborted)"});
  add_column(d, {"/rewards",
                 kF32,
                 {"samples", "components"},
                 "1",
                 "reward of each component; the names are in /reward_names",
                 "; before weighting; NaN if a worker gave none"});
}

// What there is for its tokens.
void add_tokens(std::vector<DatasetRule>& d) {
  add_ragged(d, {"/tokens", kI32, {"tokens"}, "1", "token ids, prompt then response"});
  add_ragged(d, {"/log_probs",
                 kF32,
                 {"response tokens"},
                 "nat",
                 "log-probability of each response token at the rollout temperature",
                 ": natural logarithm, full softmax"});
  add_ragged(d, {"/kept_mass",
                 kF32,
                 {"response tokens"},
                 "1",
                 "probability mass kept by top-k, top-p, min-p",
                 "; absent, like its offsets, if sampling was not truncated",
                 Presence::kMaybe});
  add_ragged(d, {"/values",
                 kF32,
                 {"valued tokens"},
                 "1",
                 "value of the state before each response token, by the critic",
                 "; absent, like its offsets, without a critic; dropped samples have none",
                 Presence::kMaybe});
  add_ragged(d, {"/layout",
                 kI32,
                 {"spans", "3"},
                 "1",
                 "columns: first response token, TP degree, replica",
                 ": the layout that produced a span; a sample may have no spans"});
}

FileSchema make_schema() {
  FileSchema s{.format = "taper-rollouts", .version = 1, .file = "rollouts/iter_NNNNNN.h5"};
  s.attributes = {{"/", "git_hash", kText, "git commit from which the program was built"},
                  {"/", "iteration", kI64, "number of the iteration"}};
  add_samples(s.datasets);
  add_tokens(s.datasets);
  return s;
}

}  // namespace

const FileSchema& rollout_schema() {
  static const FileSchema schema = make_schema();
  return schema;
}

}  // namespace taper
