// SPDX-License-Identifier: Apache-2.0
#include "rollout/RolloutOptions_params.hpp"

#include "rollout/GeneratorOptions_params.hpp"

namespace taper {

void describe_rollout(param::Section& schema, RolloutOptions& o) {
  auto s = schema.section("Rollout", "How responses are generated");
  s.integer("Prompts", o.prompts, "Prompts per iteration").at_least(1);
  s.integer("Samples Per Prompt", o.samples,
            "Responses per prompt (a group); most estimators compare them and need at least two")
      .at_least(1);
  s.integer("Max Prompt Tokens", o.max_prompt_tokens, "Longest prompt in tokens").at_least(1);
  s.integer("Max New Tokens", o.max_new_tokens, "Longest response in tokens").at_least(1);
  s.number("Temperature", o.sampling.temperature,
           "Softmax temperature; must be above 0, because greedy samples of a prompt are all equal")
      .above(0);
  describe_truncation(o.sampling, keys_of(s));
  s.list("Stop Strings", o.stop_strings, "Texts that end a response");
  s.text("Lengths", o.lengths,
         "For scaling studies: prescribed lengths of responses, drawn from a distribution "
         "(heavy-tail; taper replay lists the others) or taken from the run in this directory; "
         "empty: the model ends responses");
  s.choice(
      "Rounds", o.rounds.mode,
      "plain: each generation has the next prompts; tail: short rounds start more prompts than "
      "they keep and put off those whose responses are longest, which come together in long "
      "rounds; predicted: prompts are put off for their lengths in an earlier pass over the "
      "files (doc/rounds.md)",
      named_round_modes());
  s.number(
      "Tail Prompts", o.rounds.prompts,
      "Prompts that a short round chooses from, in multiples of Prompts; 0: for each period 1, "
      "1.25, 1.5 or 2, by price from the profile (1: nothing is put off)");
  s.number("Tail Samples", o.rounds.samples,
           "Responses per prompt that a short round starts, in multiples of Samples Per Prompt; "
           "above 1 only the shortest are trained, which favors short responses");
  s.integer("Tensor Parallel", o.tp,
            "Ranks per replica during generation; if the layout changes, the smallest degree")
      .at_least(1);
  s.choice("Mode", o.mode,
           "static: never change the layout during generation; advise: only say when it would be "
           "changed; "
           "adaptive: change it when it pays",
           named_planner_modes());
  s.text("Profile", o.profile, "Latency profile of this model and machine, made by taper profile");
  s.text("Layout", o.layout,
         "Layout at the start of each generation, TPxDP or degrees of groups (4+2+2); empty: given "
         "by Tensor Parallel, or chosen from the profile");
  describe_sizing(o, keys_of(s));
  s.check([&o] { return o.problems(); });
}

}  // namespace taper
