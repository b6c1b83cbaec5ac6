// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "device/Arena.hpp"
#include "model/PackedBatch.hpp"
#include "model/ScalarHead.hpp"
#include "model/Transformer.hpp"

namespace taper {

struct ValuePassOptions {
  int max_rows = 2048;                       // tokens per micro-batch
  int max_sequences = 256;                   // sequences per micro-batch
  MemoryPhase phase = MemoryPhase::kAlways;  // of the memory, nothing of which outlives a call
  Precision precision = {};
};

// The forward pass over packed sequences of a model with a scalar head that is not trained. Values
// have the bits that a TrainPass gives, with the memory of one layer.
class ValuePass {
 public:
  // `name` stands in the memory plan.
  static void add_memory(MemoryPlan& plan, const std::string& name, const ParamTable& table,
                         const ModelParallel& parallel, const ValuePassOptions& options);
  ValuePass(const std::string& name, const ParamTable& table, const ModelParallel& parallel,
            const ValuePassOptions& options, Arena& arena, ConstFloatMatrix rope_table);

  // value[i] at packed row rows[i], the same on all ranks of the group. Collective over
  // parallel.group().
  void values(const Exec& exec, const ModelView& view, const ModelParallel& parallel,
              const PackedSequences& sequences, std::span<const int> rows, std::span<float> value);

 private:
  ValuePassOptions options_;
  InferencePass pass_;
  LayerPages pages_;
  ScalarHead head_;
  PackedBatch batch_;
};

}  // namespace taper
