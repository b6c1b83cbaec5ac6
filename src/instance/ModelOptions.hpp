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

// What changes no bit of gradients.
enum class Exactness {
  kRun,     // nothing that changes who trains what: a run is repeated on as many ranks
  kLayout,  // the number of ranks, the tensor-parallel degree, the size of micro-batches
};

// How forward and backward passes are run.
struct PassOptions {
  int tp = 1;             // ranks per replica
  int max_tokens = 2048;  // per micro-batch
  bool checkpointing = false;
  Exactness exactness = Exactness::kLayout;
  int bundle_tokens = 0;  // of bundles; 0: 1,024, or max_tokens if these are fewer

  TrainPassOptions train_pass(Arithmetic arithmetic) const;
  std::vector<std::string> problems() const;
};

}  // namespace taper
