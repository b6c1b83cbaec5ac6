// SPDX-License-Identifier: Apache-2.0
//
// state.h5 of a checkpoint, as of checkpoint/StateFile.cpp.
#include "results/FileSchema.hpp"

namespace taper {
namespace {

using enum StoredType;
constexpr Presence kMaybe = Presence::kMaybe;

FileSchema make_schema() {
  FileSchema s{.format = "taper-state",
               .version = 1,
               .file = "checkpoints/iter_NNNNNN/state.h5",
               .scope = SizeScope::kLastName,
               .is_checksummed = false};
  s.attributes = {
      {"/", "model", kText, "family and shape of the model"},
      {"/", "layout", kText,
       "layout of the training that wrote it (TPxDP, `2x4`); absent in older files", "-", kMaybe},
      {"/", "iteration", kI64, "finished iterations; random numbers depend on it"},
      {"/", "optimizer_steps", kI64, "finished optimizer steps"},
      {"/", "seed", kI64, "`Run/Seed`; random numbers depend on it"},
      {"/", "kl_coef", kF64,
       "coefficient of the KL in the reward; if it adapts, that of the next iteration", "-",
       kMaybe},
      {"/", "prompt_batches", kI64,
       "batches of `Rollout/Prompts` prompts drawn so far; absent in older files: as `iteration`",
       "-", kMaybe},
      {"/", "command", kText,
       "whose examples `/data` counts, `sft` or `reward-model`; absent in older files", "-",
       kMaybe}};
  const std::vector<std::string> units{"units", "elements of a unit"};
  s.datasets = {{"/config", kText, {}, "", "parameters of the run as YAML"},
                {"/data",
                 kText,
                 {},
                 "",
                 "of `taper sft` and `taper reward-model`: position of the next example, and a "
                 "fingerprint of "
                 "all; else empty",
                 "",
                 kMaybe},
                {"/planner",
                 kText,
                 {},
                 "",
                 "what the planner of layouts has learned, as integers; may be empty",
                 "",
                 kMaybe},
                {"/anchors",
                 kText,
                 {},
                 "",
                 "of rewards with `Adaptive Timeout`, as pairs of integers: a hash of reward and "
                 "prompt, and the longest time of a good answer in ns",
                 "",
                 kMaybe},
                {"/policy", kText, {}, "", "name of `/planner` in older files", "", kMaybe},
                {"/rounds",
                 kText,
                 {},
                 "",
                 "where `Rollout/Rounds` tail or predicted stand in the stream of prompts and what "
                 "they know of lengths, as integers; else absent",
                 "",
                 kMaybe},
                {"/master/<tensor>", kF32, units, "", "weights before rounding (f32 masters)"},
                {"/first/<tensor>", kF32, units, "", "first moments of AdamW"},
                {"/second/<tensor>", kF32, units, "", "second moments of AdamW"},
                {"/hash/<tensor>",
                 kU64,
                 {"units", "3"},
                 "",
                 "checksums of each unit in these three datasets"}};
  return s;
}

}  // namespace

const FileSchema& state_schema() {
  static const FileSchema schema = make_schema();
  return schema;
}

}  // namespace taper
