// SPDX-License-Identifier: Apache-2.0
#include "Arguments.hpp"

#include "base/Error.hpp"

namespace taper {

void ModelArguments::declare(param::CommandLine& line, LayoutForms layouts) {
  line.text("model", model, "DIR",
            "Hugging Face directory: config.json, *.safetensors, tokenizer.json")
      .required();
  const std::string uniform =
      "how ranks form replicas of the model: DP replicas of TP ranks each, e.g. 2x4 on 8 ranks";
  line.text("layout", layout, "TPxDP",
            layouts == LayoutForms::kUniform
                ? uniform + " (default: one rank each)"
                : uniform +
                      "; or replicas of different sizes in rank order, e.g. 4+2+2 for one of 4 and "
                      "two of 2 ranks (default: one rank each)");
  declare_type(line, type);
  declare_hang_seconds(line, hang_seconds);
}

void declare_type(param::CommandLine& line, WeightType& type) {
  line.choice("dtype", type, "type of the forward weights",
              {{"bf16", WeightType::kBf16}, {"f32", WeightType::kF32}});
}

void declare_hang_seconds(param::CommandLine& line, double& seconds) {
  line.number("hang-seconds", seconds, "S",
              "a rank that waits longer than this for another one ends the job with a report")
      .above(0);
}

RankGrid ModelArguments::grid(int ranks) const {
  if (layout.empty()) return {1, ranks};
  TAPER_VALIDATE(layout.find_first_of("xX") != std::string::npos,
                 "--layout is '" << layout << "' (expected: " << kGridForm << ")");
  require_layout("--layout", layout, ranks);
  return parse_rank_grid(layout);
}

void declare_sampling(param::CommandLine& line, GenerateOptions& o) {
  line.integer("max-new-tokens", o.max_new_tokens, "N", "longest response in tokens").at_least(1);
  line.number("temperature", o.sampling.temperature, "T", "softmax temperature; 0: greedy")
      .at_least(0);
  line.number("top-p", o.sampling.top_p, "P", "nucleus sampling; 1: off").above(0).at_most(1);
  line.integer("top-k", o.sampling.top_k, "K", "sample from the K most likely ids only; 0: off")
      .at_least(0);
  line.number("min-p", o.sampling.min_p, "P",
              "sample only from ids with at least this share of the largest probability; 0: off")
      .at_least(0)
      .at_most(1);
  line.number("repetition-penalty", o.sampling.repetition_penalty, "P",
              "divides the positive and multiplies the negative logits of ids that occur in prompt "
              "or response; 1: off")
      .above(0);
  line.integer("seed", o.sampling.seed, "S", "seed of all random numbers").at_least(0);
  line.integer("samples", o.samples, "N", "responses per prompt").at_least(1).at_most(65535);
  line.repeated("stop", o.stop_strings, "TEXT", "text that ends a response");
  line.integer("max-running", o.max_running, "N", "sequences in flight per replica")
      .at_least(1)
      .at_most(kMostRunning);
  line.integer("step-rows", o.step_rows, "N", "tokens per step, decode and prefill together")
      .at_least(1)
      .at_most(kMostStepRows);
  line.number("kv-memory-mb", o.kv_memory_mb, "MB", "largest KV cache per rank in MB")
      .above(0)
      .at_most(kMostKvMemoryMb);
}

void check_sampling(const GenerateOptions& o) {
  TAPER_VALIDATE(o.sampling.temperature > 0.0f || o.samples == 1,
                 "--samples is " << o.samples
                                 << " and --temperature 0 (greedy samples of a prompt are all the "
                                    "same); set a temperature above 0, or --samples 1");
}

}  // namespace taper
