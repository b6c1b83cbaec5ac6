// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "Commands.hpp"
#include "base/Error.hpp"
#include "io/AtomicFile.hpp"
#include "io/OutputPath.hpp"
#include "param/CommandLine.hpp"
#include "simulate/LengthLaw.hpp"
#include "study/ReplayJob.hpp"

namespace taper {

namespace {

std::vector<std::pair<std::string, std::vector<LengthLaw>>> law_choices() {
  std::vector<std::pair<std::string, std::vector<LengthLaw>>> choices{{"none", {}},
                                                                      {"all", all_length_laws()}};
  for (const auto& [name, law] : named_length_laws())
    choices.emplace_back(name, std::vector<LengthLaw>{law});
  return choices;
}

void declare(param::CommandLine& line, ReplayOptions& o) {
  line.text("profile", o.profile, "FILE",
            "latency profile with the step times of the machine: profile.h5")
      .required();
  line.repeated("run", o.runs, "DIR",
                "takes recorded lengths from a run with rollouts/*.h5, or from one such file");
  line.choice("law", o.laws,
              "draws lengths from a distribution instead of runs; default: all distributions if no "
              "run is given",
              law_choices());
  line.integer("ranks", o.ranks, "N", "ranks that generate; 0: those of the profile").at_least(0);
  line.list("tp", o.planner.degrees, "T,...",
            "allowed tensor-parallel degrees; default: all of the profile");
  line.integer("seeds", o.seeds, "N", "runs per distribution").at_least(1);
  line.integer("iterations", o.iterations, "N", "generations per run of a distribution")
      .at_least(1);
  line.integer("warm-up", o.account.warm_up, "N",
               "additional generations before these (of a recorded run: its first ones) from which "
               "the planner learns, but which do not count")
      .at_least(0);
  line.integer("sequences", o.sequences, "N", "responses per generation of a distribution")
      .at_least(1);
  line.integer("samples", o.samples, "N", "responses per prompt of a distribution, for rounds")
      .at_least(1);
  line.integer("prompt-tokens", o.prompt_tokens, "N", "prompt length with a distribution")
      .at_least(1);
  line.integer(
          "max-new-tokens", o.max_new_tokens, "N",
          "limit of response lengths; 0: 1024 with a distribution, the longest response of a run")
      .at_least(0);
  line.integer("max-running", o.max_running, "N", "sequences in flight per rank").at_least(1);
  line.integer("seed", o.planner.seed, "S", "seed of the planner's scenarios").at_least(0);
  line.integer("scenarios", o.planner.scenarios, "N", "length scenarios per decision")
      .at_least(PlannerOptions::kLeastScenarios)
      .at_most(PlannerOptions::kMostScenarios);
  line.integer("least-gain", o.planner.least_gain, "N",
               "over the scenarios in which it saves time a switch must save so many times what it "
               "loses in the others")
      .at_least(1);
  line.flag("mixed", o.planner.mixed_groups, "allows groups of different degrees");
  line.flag("repack", o.planner.repack,
            "allows moving sequences between replicas without changing the layout");
}

}  // namespace

int run_replay(int argc, char** argv) {
  ReplayOptions options;
  std::string output;
  param::CommandLine line("taper replay",
                          "Evaluates the planner on recorded or synthetic response lengths.");
  declare(line, options);
  bool rounds = false;
  line.flag("rounds", rounds,
            "plays rounds of tail batching over the lengths, with and without changes of layout "
            "(doc/rounds.md)");
  line.text("output", output, "FILE", "results, one JSON line per generation");
  if (line.parse_or_print_help(argc, argv)) return 0;
  if (options.laws.empty() && options.runs.empty()) options.laws = all_length_laws();
  if (rounds) {
    TAPER_VALIDATE(output.empty(),
                   "--output cannot be used with --rounds (which prints a table "
                   "only); leave one of them out");
    std::fputs(replay_rounds(options).c_str(), stdout);
    return 0;
  }
  if (!output.empty()) {
    std::vector<std::filesystem::path> inputs(options.runs.begin(), options.runs.end());
    inputs.push_back(options.profile);
    require_writable(output, inputs);
  }
  const auto results = replay(options);
  std::fputs(to_table(results).c_str(), stdout);
  if (!output.empty()) write_file_atomically(output, to_json_lines(results));
  return 0;
}

}  // namespace taper
