// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/Random.hpp"
#include "comm/Collectives.hpp"
#include "model/GoldenModel.hpp"
#include "rl/UpdateLoop.hpp"
#include "support/AllSamples.hpp"

namespace taper::test {

struct LearningModelOptions {
  const Group& dp;
  const Group& tp;
  int max_rows = 2048;
  AdamWOptions adamw = {};
  float temperature = 1.0f;
  std::optional<std::uint64_t> score_seed = {};  // of a scalar head
  MemoryOwner owner = {};
  std::string model = "llama_b";
  GradientType gradients = GradientType::kF32;
  int bundle_tokens = 0;
  bool bundles_of_prompts = false;
};

// A golden model with its optimizer, trained by data-parallel ranks.
class LearningModel {
 public:
  explicit LearningModel(const LearningModelOptions& o)
      : dp_(o.dp),
        tp_(o.tp),
        pass_options_(pass_options(o)),
        model_(golden_dir(o.model), o.tp, WeightType::kF32, pass_options_, 512, o.score_seed),
        adamw_options_(adamw_options(o)),
        arena_(plan(o.owner)),
        adamw_(model_.local, o.tp, o.dp, adamw_options_, arena_, o.owner),
        temperature_(o.temperature) {
    std::copy_n(model_.values.begin() + adamw_.begin(), adamw_.size(), adamw_.master().data());
  }

  PassContext context() {
    return {model_.exec,  *model_.view,  model_.parallel,
            *model_.pass, pass_options_, {model_.config.vocab, temperature_}};
  }
  UpdateTarget trained() {
    return {context(), dp_, *model_.gradients, adamw_, [this] { publish(); }};
  }
  static UpdateOptions update_options(int mini_batches, int epochs) {
    UpdateOptions options{{}, mini_batches, epochs};
    options.schedule.peak = 1e-3;
    return options;
  }

  // Groups of three random responses to random prompts.
  std::vector<Sample> random_samples() const {
    RandomStream random(7, RandomPurpose::kTest, 0, 0);
    const auto ids = [&](int n) {
      std::vector<std::int32_t> list;
      for (int i = 0; i < n; ++i)
        list.push_back(static_cast<std::int32_t>(random.below(model_.config.vocab)));
      return list;
    };
    std::vector<Sample> samples;
    for (int i = 0; i < 12; ++i) {
      Sample s;
      s.id.prompt = i / 3;
      s.id.sample = i % 3;
      s.prompt = i % 3 == 0 ? ids(2 + i) : samples.back().prompt;
      s.response = ids(1 + (i * 7) % 20);
      samples.push_back(std::move(s));
    }
    return samples;
  }

  // Samples that all ranks have, over the ranks of this model: it is parallel over one group.
  SampleSet spread(const std::vector<Sample>& samples) const {
    return test::spread(dp_.size() > 1 ? dp_ : tp_, samples);
  }

  // Of the last update, by the exponential average of AdamW's first step.
  std::vector<float> gradient() { return gather(adamw_.first_moment()); }
  const std::vector<float>& weights() const { return model_.values; }
  // Of the local pieces.
  const LocalParams& local() const { return model_.local; }
  std::span<const float> weights_of(const LocalParams::Piece& piece) const {
    return {model_.values.data() + piece.offset, static_cast<std::size_t>(piece.size)};
  }

 private:
  static TrainPassOptions pass_options(const LearningModelOptions& given) {
    TrainPassOptions o;
    o.max_rows = given.max_rows;
    o.checkpointing = Checkpointing::kNo;
    o.gradients = given.gradients;
    o.bundle_tokens = given.bundle_tokens;
    o.bundles_of_prompts = given.bundles_of_prompts;
    return o;
  }
  static AdamWOptions adamw_options(const LearningModelOptions& given) {
    AdamWOptions o = given.adamw;
    o.gradients = given.gradients;
    return o;
  }
  MemoryPlan plan(const MemoryOwner& owner) {
    MemoryPlan plan;
    ShardedAdamW::add_memory(plan, model_.local, dp_, adamw_options_, owner);
    return plan;
  }
  std::vector<float> gather(FloatVector mine) {
    std::vector<std::int64_t> counts(dp_.size());
    all_gather(dp_, counts, std::vector<std::int64_t>{adamw_.size()});
    std::vector<float> all(model_.values.size());
    all_gather_v(dp_, all, mine, counts);
    return all;
  }
  void publish() {
    model_.values = gather(adamw_.master());
    model_.pack();
  }

  const Group& dp_;
  const Group& tp_;
  TrainPassOptions pass_options_;
  LoadedModel model_;
  AdamWOptions adamw_options_;
  Arena arena_;
  ShardedAdamW adamw_;
  float temperature_;
};

// All ranks, and this one alone.
struct Groups {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
};

// Takes the loss from some tokens: one response in four has none, one in four lacks every third.
inline void mask_some(std::vector<Sample>& samples) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Sample& s = samples[i];
    if (i % 4 == 1) s.mask.assign(s.response.size(), 0);
    if (i % 4 == 2)
      for (std::size_t t = 0; t < s.response.size(); ++t) s.mask.push_back(t % 3 == 1 ? 0 : 1);
  }
}

// The largest difference of two gradients by the largest entry.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  return worst / largest;
}

inline double relative(double a, double b) {
  return std::abs(a - b) / std::max(std::abs(a), 1e-12);
}

}  // namespace taper::test
