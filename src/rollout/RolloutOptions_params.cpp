// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutOptions_params.hpp"

namespace taper {

void describe_rollout(param::Section& schema, RolloutOptions& o) {
  auto s = schema.section("Rollout", "How responses are generated");
  s.integer("Prompts", o.prompts, "Prompts per iteration").at_least(1);
  s.integer("Samples Per Prompt", o.samples,
            "Responses per prompt (a group); most estimators compare them, so one is too few")
      .at_least(1);
  s.integer("Max Prompt Tokens", o.max_prompt_tokens, "Longest prompt").at_least(1);
  s.integer("Max New Tokens", o.max_new_tokens, "Longest response").at_least(1);
  s.number("Temperature", o.temperature,
           "Softmax temperature; at 0 all samples of a prompt would be equal, their advantages 0")
      .above(0);
  s.number("Top P", o.top_p, "Nucleus sampling; 1 is off").above(0).at_most(1);
  s.integer("Top K", o.top_k, "Keep the k likeliest ids; 0 is off").at_least(0);
  s.number("Min P", o.min_p, "Keep ids of at least this share of the largest probability; 0 is off")
      .between(0, 1);
  s.number("Repetition Penalty", o.repetition_penalty,
           "Only 1 (off) in training: the update knows no penalty; evaluations may have one")
      .above(0);
  s.list("Stop Strings", o.stop_strings, "Texts that end a response");
  s.text("Lengths", o.lengths,
         "For scaling studies: where responses end, by a law of lengths (heavy-tail; taper replay "
         "has the others) or as in the run in this directory; empty: where the model ends them");
  s.integer("Tensor Parallel", o.tp,
            "Ranks per replica during generation; the smallest degree where the layout changes")
      .at_least(1);
  s.choice("Mode", o.mode,
           "Whether the layout changes during generation: never, only in words, or where it pays",
           {{"static", PlannerMode::kStatic},
            {"advise", PlannerMode::kAdvise},
            {"adaptive", PlannerMode::kAdaptive}});
  s.text("Profile", o.profile, "Latency profile of this model and machine, by taper profile");
  s.text("Layout", o.layout,
         "Layout at the start of each generation, TPxDP or degrees of groups (4+2+2); empty: by "
         "Tensor Parallel, or chosen from the profile");
  s.integer("Max Running", o.max_running,
            "Sequences in flight per replica; where the layout may change, per replica of the "
            "smallest groups, and in proportion in larger ones")
      .between(1, kMostRunning);
  s.integer("Step Rows", o.step_rows, "Tokens per step, decode and prefill together")
      .between(1, kMostStepRows);
  s.number("KV Memory MB", o.kv_memory_mb, "Largest KV cache per rank")
      .above(0)
      .at_most(kMostKvMemoryMb);
  s.check([&o] { return o.problems(); });
}

}  // namespace taper
