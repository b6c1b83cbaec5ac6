// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "instance/TrainingModel.hpp"

namespace taper {

struct ModelOptions {
  std::string directory;
  WeightType type = WeightType::kBf16;
  Arithmetic arithmetic = kDefaultArithmetic;

  std::vector<std::string> problems() const;
};

// The values of options, by their names.
std::vector<std::pair<std::string, WeightType>> named_weight_types();
std::vector<std::pair<std::string, Arithmetic>> named_arithmetics();

// Why models with weights of the type cannot compute in the arithmetic, the value of `key`; empty
// if they can.
std::string arithmetic_problem(const std::string& key, Arithmetic arithmetic, WeightType type);

// How forward and backward passes are run.
struct PassOptions {
  int tp = 1;             // ranks per replica
  int max_tokens = 2048;  // per micro-batch
  bool checkpointing = false;

  TrainPassOptions train_pass(Arithmetic arithmetic) const;
};

}  // namespace taper
