// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "Commands.hpp"
#include "driver/OutputPath.hpp"
#include "driver/ReplayJob.hpp"
#include "io/AtomicFile.hpp"
#include "param/CommandLine.hpp"

namespace taper {

int run_replay(int argc, char** argv) {
  ReplayOptions options;
  std::string output;
  int law = -1;
  constexpr int kNone = -1, kAll = -2;
  param::CommandLine line("taper replay",
                          "Judges the layout policy on recorded or described response lengths.");
  line.text("profile", options.profile, "FILE", "step times of the machine: profile.h5").required();
  line.repeated("run", options.runs, "DIR",
                "recorded lengths: a run with rollouts/*.h5, or one such file");
  line.choice(
      "law", law,
      "lengths by a described law, instead of runs; default: all laws where there is no run",
      {{"none", kNone},
       {"all", kAll},
       {"log-normal", static_cast<int>(LengthLaw::kLogNormal)},
       {"heavy-tail", static_cast<int>(LengthLaw::kHeavyTail)},
       {"no-tail", static_cast<int>(LengthLaw::kNarrow)},
       {"bimodal", static_cast<int>(LengthLaw::kBimodal)},
       {"truncated", static_cast<int>(LengthLaw::kTruncated)},
       {"drifting", static_cast<int>(LengthLaw::kDrifting)}});
  line.integer("ranks", options.ranks, "N", "generation ranks; 0: those of the profile")
      .at_least(0);
  line.list("tp", options.policy.degrees, "T,...", "degrees allowed; default: all of the profile");
  line.integer("seeds", options.seeds, "N", "runs per law").at_least(1);
  line.integer("iterations", options.iterations, "N", "generations per run of a law").at_least(1);
  line.integer(
          "warm-up", options.account.warm_up, "N",
          "generations that come before them (of a run: its first ones), from which the policy "
          "learns but which are not accounted")
      .at_least(0);
  line.integer("sequences", options.sequences, "N", "responses per generation of a law")
      .at_least(1);
  line.integer("prompt-tokens", options.prompt_tokens, "N", "length of a law's prompts")
      .at_least(1);
  line.integer("max-new-tokens", options.max_new_tokens, "N",
               "limit of response lengths; 0: 1024 of a law, the longest response of a run")
      .at_least(0);
  line.integer("max-running", options.max_running, "N", "sequences in flight per rank").at_least(1);
  line.integer("seed", options.policy.seed, "S", "seed of the policy's scenarios").at_least(0);
  line.integer("scenarios", options.policy.scenarios, "N", "length scenarios per decision")
      .at_least(PolicyOptions::kLeastScenarios)
      .at_most(PolicyOptions::kMostScenarios);
  line.integer("low-percent", options.policy.low_percent, "P",
               "a switch must save time at this quantile of the scenarios")
      .at_least(1)
      .at_most(50);
  line.flag("mixed", options.policy.mixed_groups, "groups of different degrees");
  line.flag("repack", options.policy.repack, "moving sequences without changing the layout");
  line.text("output", output, "FILE", "the account, one JSON line per generation");
  if (line.parse(argc, argv) == param::CommandLine::Next::kShowHelp) {
    std::fputs(line.help().c_str(), stdout);
    return 0;
  }
  if (law == kAll || (law == kNone && options.runs.empty()))
    options.laws = all_length_laws();
  else if (law != kNone)
    options.laws = {static_cast<LengthLaw>(law)};
  if (!output.empty()) require_writable(output);
  const auto results = replay(options);
  std::fputs(to_table(results).c_str(), stdout);
  if (!output.empty()) write_file_atomically(output, to_json_lines(results));
  return 0;
}

}  // namespace taper
