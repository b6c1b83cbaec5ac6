// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "instance/TrainingModel.hpp"

namespace taper {

// What cached keys and values are: by default f32 on CPUs, and on GPUs what their arithmetic needs.
enum class CacheType { kAuto, kF32, kBf16 };

// In which numbers models compute.
struct Numbers {
  WeightType type = WeightType::kBf16;  // of the forward weights
  Arithmetic arithmetic = kDefaultArithmetic;
  CacheType cache = CacheType::kAuto;

  KvType kv_type() const;
  Precision precision() const { return {arithmetic, kv_type()}; }
  // If they do not fit each other: the values of these keys, or of options of a command.
  std::vector<std::string> problems(const std::string& arithmetic_key,
                                    const std::string& cache_key) const;
};

struct ModelOptions : Numbers {
  std::string directory;

  std::vector<std::string> problems() const;
};

// The values of options, by their names.
std::vector<std::pair<std::string, WeightType>> named_weight_types();
std::vector<std::pair<std::string, Arithmetic>> named_arithmetics();
std::string to_string(Arithmetic arithmetic);
std::vector<std::pair<std::string, CacheType>> named_cache_types();

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

  TrainPassOptions train_pass(const Precision& precision) const;
  std::vector<std::string> problems() const;
};

}  // namespace taper
