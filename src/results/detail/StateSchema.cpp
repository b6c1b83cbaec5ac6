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
       "tensor-parallel degree and replicas of the training that wrote it, `2x4`; absent in older "
       "files",
       "-", kMaybe},
      {"/", "iteration", kI64, "finished iterations; random numbers follow from it"},
      {"/", "optimizer_steps", kI64, "steps done"},
      {"/", "seed", kI64, "random numbers follow from it"},
      {"/", "kl_coef", kF64,
       "coefficient of the KL in the reward, where it adapts the one of the next iteration", "-",
       kMaybe},
      {"/", "prompt_batches", kI64,
       "batches of `Rollout/Prompts` prompts drawn so far; `iteration` where it is absent, in "
       "older files",
       "-", kMaybe}};
  const std::vector<std::string> units{"units", "elements of a unit"};
  s.datasets = {
      {"/config", kText, {}, "", "parameters as YAML"},
      {"/data",
       kText,
       {},
       "",
       "of `taper sft`: position of the next example, and a fingerprint of all; else empty",
       "",
       kMaybe},
      {"/planner",
       kText,
       {},
       "",
       "integers that the planner of layouts has learned; may be empty",
       "",
       kMaybe},
      {"/policy", kText, {}, "", "the same in older files", "", kMaybe},
      {"/master/<tensor>", kF32, units, "", "weights before rounding"},
      {"/first/<tensor>", kF32, units, "", "first moments of AdamW"},
      {"/second/<tensor>", kF32, units, "", "second moments of AdamW"},
      {"/hash/<tensor>", kU64, {"units", "3"}, "", "checksums of each unit in the three"}};
  return s;
}

}  // namespace

const FileSchema& state_schema() {
  static const FileSchema schema = make_schema();
  return schema;
}

}  // namespace taper
