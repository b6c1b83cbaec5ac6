// SPDX-License-Identifier: Apache-2.0
#include "Arguments.hpp"

#include <cctype>
#include <type_traits>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "instance/ModelOptions.hpp"
#include "rollout/GeneratorOptions_params.hpp"
#include "session/LayoutChecks.hpp"

namespace taper {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Declares the options that keys of a run file correspond to: --top-p for Top P.
auto options_of(param::CommandLine& line) {
  return [&line](std::string name, const char* label, auto& member, std::string doc) {
    for (char& c : name) c = c == ' ' ? '-' : lower(c);
    doc.front() = lower(doc.front());
    if constexpr (std::is_integral_v<std::remove_reference_t<decltype(member)>>)
      return line.integer(name, member, label, doc);
    else
      return line.number(name, member, label, doc);
  };
}

}  // namespace

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
  declare_numbers(line, numbers);
  declare_hang_seconds(line, hang_seconds);
}

void declare_numbers(param::CommandLine& line, Numbers& numbers) {
  line.choice("dtype", numbers.type, "type of the forward weights", named_weight_types());
  line.choice(
      "arithmetic", numbers.arithmetic,
      "arithmetic of products; f32: the same bits on all machines; bf16: both operands are "
      "rounded, for matrix units, with the same bits on all CPUs; bf16-dot: the same for the "
      "dot products of AVX512-BF16",
      named_arithmetics());
  line.choice("cache-type", numbers.cache,
              "type of cached keys and values; bf16: half of the memory; auto: f32 on CPUs, and on "
              "GPUs that of the arithmetic",
              named_cache_types());
}

void check_numbers(const Numbers& numbers) {
  require_no_problems(numbers.problems("--arithmetic", "--cache-type"), "the arguments");
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
  describe_sampling(o.sampling, options_of(line));
  line.integer("seed", o.sampling.seed, "S", "seed of all random numbers").at_least(0);
  line.integer("samples", o.samples, "N", "responses per prompt").at_least(1).at_most(65535);
  line.repeated("stop", o.stop_strings, "TEXT", "text that ends a response");
  describe_sizing(o, options_of(line));
  line.choice("speculation", o.speculation.mode,
              "drafts of several tokens per step, which change no token: off, auto (where they "
              "pay) or fixed (always)",
              named_speculation_modes());
  describe_drafts(o.speculation, options_of(line));
  line.text("draft-model", o.speculation.draft_model, "DIR", kDraftModelDoc);
  line.text("early-exits", o.speculation.early_exits, "DIR", kExitsDoc);
  line.choice("draft-placement", o.speculation.draft_placement, kDraftPlacementDoc,
              named_draft_placements());
}

void check_sampling(const GenerateOptions& o) {
  TAPER_VALIDATE(o.sampling.temperature > 0.0f || o.samples == 1,
                 "--samples is " << o.samples
                                 << " and --temperature 0 (greedy samples of a prompt are all the "
                                    "same); set a temperature above 0, or --samples 1");
  require_no_problems(o.problems());
}

void report_drafts(const GenerateOptions& options, const GenerationReport& report) {
  if (options.speculation.is_on())
    TAPER_INFO("speculation: " << summary(report.speculation.total()));
}

}  // namespace taper
