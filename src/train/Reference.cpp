// SPDX-License-Identifier: Apache-2.0
#include "train/Reference.hpp"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rl/TeacherForcing.hpp"

namespace taper {
namespace {

// Only where the host has other memory.
bool is_offloaded(const RunOptions& o) {
  return o.training.offload_reference && ArenaMemory::kHasStaging;
}

TrainPassOptions pass_options(const RunOptions& o, MemoryPhase phase) {
  TrainPassOptions pass = o.pass_options();
  pass.checkpointing = Checkpointing::kYes;  // nothing is kept for a backward pass
  pass.owner = {"reference", phase};
  return pass;
}

}  // namespace

Reference::Reference(const RunOptions& options, const ModelFiles& files, const ModelPlace& place,
                     Policy& policy, MemoryPhase phase)
    : options_(options),
      files_(files),
      place_(place),
      policy_(policy),
      pass_options_(pass_options(options, phase)) {
  if (place.ranks == nullptr) return;
  std::optional<MemoryPhase> offloaded;
  if (is_offloaded(options)) offloaded = phase;
  model_ = std::make_unique<InferenceModel>("reference", files, *place.ranks, place.layout.grid.tp,
                                            offloaded);
}

bool Reference::has_own_passes(const RunOptions& options, const ModelPlace& place,
                               const Policy& policy) {
  return place.layout != policy.place().layout || is_offloaded(options);
}

void Reference::add_memory(MemoryPlan& plan) const {
  if (!model_) return;
  model_->add_memory(plan, options_.model.type);
  if (has_own_passes(options_, place_, policy_))
    TrainPass::add_memory(plan, files_.table, model_->parallel(), pass_options_);
}

void Reference::create(Arena& arena, ConstFloatMatrix rope_table) {
  if (!model_) return;
  model_->load(options_.model.type, arena);
  if (has_own_passes(options_, place_, policy_))
    pass_ = std::make_unique<TrainPass>(files_.table, model_->parallel(), pass_options_, arena,
                                        rope_table);
}

void Reference::bring(SampleSet& samples) {
  if (is_in_layout_of_policy())
    policy_.trainer().bring(samples);
  else
    share_out(samples, place_.layout.grid);
}

void Reference::score(SampleSet& samples) {
  bring(samples);
  score(samples.here());
}

void Reference::score(std::vector<Sample>& samples) {
  std::vector<Sample*> missing;
  for (Sample& s : samples)
    if (s.ref_log_probs.empty()) missing.push_back(&s);
  // Before the first step policy and reference are one model, whose log-probs have the bits of the
  // rollout.
  if (is_in_layout_of_policy() && policy_.model()->optimizer().steps() == 0) {
    for (Sample* s : missing) s->ref_log_probs = s->log_probs;
    return;
  }
  if (!missing.empty()) model_->bring();
  std::vector<std::span<const std::int32_t>> prompts, responses;
  for (const Sample* s : missing) {
    prompts.emplace_back(s->prompt);
    responses.emplace_back(s->response);
  }
  const PassContext context =
      pass_ ? PassContext{place_.ranks->exec,
                          model_->view(),
                          model_->parallel(),
                          *pass_,
                          pass_options_,
                          {files_.valid_ids(), options_.rollout.sampling.temperature}}
            : policy_.context(model_->view());
  auto log_probs = response_log_probs(context, prompts, responses);
  for (std::size_t k = 0; k < missing.size(); ++k)
    missing[k]->ref_log_probs = std::move(log_probs[k]);
}

}  // namespace taper
