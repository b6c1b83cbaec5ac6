// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutOptions_params.hpp"

namespace taper {

void describe_rollout(param::Section& schema, RolloutOptions& o) {
  auto s = schema.section("Rollout", "How responses are generated");
  s.integer("Prompts", o.prompts, "Prompts per iteration").at_least(1);
  s.integer("Samples Per Prompt", o.samples,
            "Responses per prompt (a group); most estimators compare them and need at least two")
      .at_least(1);
  s.integer("Max Prompt Tokens", o.max_prompt_tokens, "Longest prompt in tokens").at_least(1);
  s.integer("Max New Tokens", o.max_new_tokens, "Longest response in tokens").at_least(1);
  s.number("Temperature", o.temperature,
           "Softmax temperature; must be above 0, because greedy samples of a prompt are all equal")
      .above(0);
  s.number("Top P", o.top_p, "Nucleus sampling; 1: off").above(0).at_most(1);
  s.integer("Top K", o.top_k, "Sample from the k most likely ids only; 0: off").at_least(0);
  s.number("Min P", o.min_p,
           "Sample only from ids with at least this share of the largest probability; 0: off")
      .between(0, 1);
  s.list("Stop Strings", o.stop_strings, "Texts that end a response");
  s.text("Lengths", o.lengths,
         "For scaling studies: prescribed lengths of responses, drawn from a distribution "
         "(heavy-tail; taper replay lists the others) or taken from the run in this directory; "
         "empty: the model ends responses");
  s.integer("Tensor Parallel", o.tp,
            "Ranks per replica during generation; if the layout changes, the smallest degree")
      .at_least(1);
  s.choice("Mode", o.mode,
           "static: never change the layout during generation; advise: log recommendations only; "
           "adaptive: change it when it pays",
           {{"static", PlannerMode::kStatic},
            {"advise", PlannerMode::kAdvise},
            {"adaptive", PlannerMode::kAdaptive}});
  s.text("Profile", o.profile, "Latency profile of this model and machine, made by taper profile");
  s.text("Layout", o.layout,
         "Layout at the start of each generation, TPxDP or degrees of groups (4+2+2); empty: given "
         "by Tensor Parallel, or chosen from the profile");
  s.integer("Max Running", o.max_running,
            "Sequences in flight per replica; if the layout may change, per replica of the "
            "smallest degree, and proportionally more in larger groups")
      .between(1, kMostRunning);
  s.integer("Step Rows", o.step_rows, "Tokens per step, decode and prefill together")
      .between(1, kMostStepRows);
  s.number("KV Memory MB", o.kv_memory_mb, "Largest KV cache per rank in MB")
      .above(0)
      .at_most(kMostKvMemoryMb);
  s.check([&o] { return o.problems(); });
}

}  // namespace taper
