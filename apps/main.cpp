// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Text.hpp"
#include "base/Version.hpp"
#include "session/Guard.hpp"

namespace {

struct Command {
  const char* name;
  const char* purpose;
  int (*run)(int, char**);
};

constexpr Command kCommands[] = {
    {"train", "train a model by reinforcement learning, configured by a run file",
     taper::run_train},
    {"sft", "supervised fine-tuning on files of examples or in-tree tasks", taper::run_sft},
    {"reward-model", "train a reward model on preference pairs", taper::run_reward_model},
    {"generate", "generate responses to a file of prompts", taper::run_generate},
    {"score", "compute log-probs of given tokens", taper::run_score},
    {"eval", "compute avg@k, pass@k and maj@k of a model", taper::run_eval},
    {"draft", "make a draft model of some layers of a model", taper::run_draft},
    {"exits", "make early exits of a model, and train them", taper::run_exits},
    {"profile", "measure step times and switching costs for adaptive runs", taper::run_profile},
    {"plan", "search where the models of a run are best placed", taper::run_plan},
    {"inspect", "print and check a file, run, checkpoint or model directory", taper::run_inspect},
    {"replay", "evaluate the planner on recorded response lengths", taper::run_replay},
    {"simulate", "evaluate the planner on described machines", taper::run_simulate},
    {"report", "draw pictures and a report of one or several runs", taper::run_report},
};

void print_usage() {
  std::printf("usage: taper COMMAND [options]; taper COMMAND --help lists the options\n\n");
  for (const Command& c : kCommands) std::printf("  %-12s %s\n", c.name, c.purpose);
  std::printf("\ntaper --version prints the version of this build\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--help") == 0) {
    print_usage();
    return argc < 2 ? static_cast<int>(taper::ExitCode::kBadInput) : 0;
  }
  if (std::strcmp(argv[1], "--version") == 0) {
    const auto build = taper::build_info();
    std::printf("taper %s (%s, %s, %s)\n", build.version.c_str(), build.git_hash.c_str(),
                build.compiler.c_str(), build.build_type.c_str());
    return 0;
  }
  const int code = taper::run_guarded([&] {
    std::vector<std::string> names;
    for (const Command& c : kCommands) {
      if (std::strcmp(argv[1], c.name) == 0) return c.run(argc - 1, argv + 1);
      names.emplace_back(c.name);
    }
    const std::string close = taper::nearest(argv[1], names);
    TAPER_FAIL(taper::ExitCode::kBadInput,
               "unknown command '" << argv[1] << "' (known: " << taper::join(names) << ")"
                                   << (close.empty() ? "" : "; did you mean '" + close + "'?"));
  });
  // After a failure libraries may hold files that they cannot close (HDF5 crashes in its exit
  // handler when the disk is full).
  std::fflush(nullptr);
  if (code != 0) std::_Exit(code);
  return code;
}
