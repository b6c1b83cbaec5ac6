// SPDX-License-Identifier: Apache-2.0
#include "instance/ModelOptions_params.hpp"

namespace taper {

void describe_model(param::Section& schema, ModelOptions& o) {
  auto s = schema.section("Model", "The model to train");
  s.text("Directory", o.directory,
         "Hugging Face directory: config.json, *.safetensors, tokenizer.json");
  s.choice("Weight Type", o.type, "Type of the forward weights; master weights are always f32",
           named_weight_types());
  s.choice("Arithmetic", o.arithmetic,
           "Arithmetic of products. f32: the same bits on all machines. bf16: both operands are "
           "rounded; for matrix units, with the same bits on all CPUs (AMX is used where it is). "
           "bf16-dot: the same for the dot products of AVX512-BF16, on CPUs alone",
           named_arithmetics());
  s.choice(
      "Cache Type", o.cache,
      "Type of cached keys and values. bf16 takes half of the memory and rounds them; auto: f32 "
      "on CPUs, and on GPUs that of the arithmetic",
      named_cache_types());
  s.check([&o] { return o.problems(); });
}

void describe_passes(param::Section& s, PassOptions& o) {
  s.integer("Tensor Parallel", o.tp, "Ranks per replica during training").at_least(1);
  s.integer("Max Tokens", o.max_tokens, "Tokens per micro-batch").at_least(1);
  s.flag("Activation Checkpointing", o.checkpointing,
         "Recompute activations of layers in the backward pass instead of keeping them");
  s.choice(
      "Exactness", o.exactness,
      "What changes no bit of losses, gradients and weights. layout: neither the number of "
      "ranks, nor Tensor Parallel up to the number of KV heads. run: nothing, but a run on as many "
      "ranks repeats itself; gradients take half of the memory",
      {{"run", Exactness::kRun}, {"layout", Exactness::kLayout}});
  s.integer(
       "Bundle Tokens", o.bundle_tokens,
       "For layout: tokens whose gradient is computed at once on one replica, at most; another "
       "number gives other bits. 0: 1,024, or Max Tokens if these are fewer")
      .at_least(0);
  s.check([&o] { return o.problems(); });
}

}  // namespace taper
