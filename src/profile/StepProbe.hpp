// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/Engine.hpp"
#include "instance/InferenceModel.hpp"
#include "instance/ModelFiles.hpp"
#include "session/Ranks.hpp"

namespace taper {

struct StepProbeOptions {
  WeightType type = WeightType::kBf16;
  int max_positions = 0;  // longest sequence
  int max_batch = 64;     // sequences per rank: a replica of degree t decodes up to t times as many
  int step_rows = 256;    // most new tokens in a step
  double kv_memory_mb = 1024.0;  // per rank and degree, at most; bounds the summed context

  std::vector<std::string> problems() const;
};

// What a step does: `tokens` new tokens in `batch` sequences that hold `context` positions together
// after it. tokens = batch is plain decoding; more belong to the first sequence, a prompt in
// chunks, or are `drafted` guesses of each sequence, which `context` does not count.
struct StepShape {
  int tokens = 1;
  int batch = 1;
  std::int64_t context = 1;
  int drafted = 0;

  bool decodes() const { return tokens == batch; }
  bool verifies() const { return drafted > 0; }

  friend bool operator==(const StepShape&, const StepShape&) = default;
};

// Times single steps of the engine that generates the rollouts, at several tensor-parallel degrees
// over the same weights: those of the smallest degree, seen as views by the others. Contexts are
// made up (the cache holds arbitrary numbers), so that no step but the timed ones is computed.
class StepProbe {
 public:
  static constexpr int kLongestRun = 16;  // steps of one measure(), warm-up included

  // `degrees` ascending, in the chain of the ranks. Refers to files and ranks.
  StepProbe(const StepProbeOptions& options, ModelFiles& files, const Ranks& ranks,
            const std::vector<int>& degrees);
  ~StepProbe();

  const MemoryPlan& memory_plan() const { return plan_; }
  // Reads the weights and makes the engine. Collective over the world.
  void load();

  int max_batch(int degree) const { return options_.max_batch * degree; }
  int max_tokens(int degree) const;
  // The largest summed context of a step that fits the cache and the model; below `tokens` if
  // not even that of empty sequences fits.
  std::int64_t max_context(int degree, int tokens, int batch) const;
  const PackedModel& weights() const { return model_->packed(); }
  const ModelParallel& parallel(int degree) const;

  // Nanoseconds of `steps` steps after `warm_up` others, all replicas of the degree at work at the
  // same time: `steps` values of each replica's leader, in rank order, the same on every rank.
  // Decoding goes on for steps in a row around the given context. Collective over the world.
  std::vector<std::int64_t> measure(int degree, const StepShape& shape, int warm_up, int steps);

 private:
  struct Side;  // one degree
  void place(const Side& side, const StepShape& shape, int steps_before);

  StepProbeOptions options_;
  ModelFiles* files_;
  const Ranks* ranks_;
  std::map<int, std::unique_ptr<Side>> sides_;
  std::unique_ptr<InferenceModel> model_;  // of the smallest degree
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_;
  EngineMemory memory_;
  std::unique_ptr<Engine> engine_;  // goes from degree to degree
};

}  // namespace taper
