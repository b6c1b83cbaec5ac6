// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "RunArguments.hpp"
#include "RunRewards.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "io/AtomicFile.hpp"
#include "io/OutputPath.hpp"
#include "param/CommandLine.hpp"
#include "param/Schema.hpp"
#include "pricing/PlanJob.hpp"
#include "pricing/PlanTable.hpp"
#include "profile/RunIdentity.hpp"
#include "session/LayoutChecks.hpp"
#include "session/Session.hpp"
#include "session/StopRequest.hpp"
#include "train/RunDegrees.hpp"
#include "train/RunOptions_params.hpp"
#include "workers/Spawner.hpp"

namespace taper {
namespace {

struct Arguments {
  std::string run_file, output, json;
  std::vector<std::string> assignments;
  int ranks = 0;                          // 0: those that are started
  int measure = 0;                        // placements that are tried
  int iterations = kFirstTimedIteration;  // of a trial
  PlanOptions plan;
};

void declare(param::CommandLine& line, Arguments& a) {
  line.positional("RUN", a.run_file, "run file (YAML); default: only defaults and --set");
  line.repeated("set", a.assignments, "NAME=VALUE", "overrides a value of the run file");
  line.repeated("profile", a.plan.profiles, "FILE",
                "profile with passes (taper profile --passes): of the policy, and of each other "
                "shape of model in the run");
  line.text("lengths", a.plan.lengths, "RUN",
            "output directory of a run whose response lengths count; default: Rollout/Lengths, or "
            "log-normal lengths");
  line.integer("ranks", a.ranks, "N", "plans for so many ranks; default: those that are started")
      .at_least(0);
  line.number("memory-gib", a.plan.memory_gib, "GIB",
              "memory of a rank for models in GiB; 0: not limited (placements that the hosts of "
              "the started ranks cannot hold are left out in any case)")
      .at_least(0);
  line.integer("top", a.plan.search.top, "N", "number of placements to list").at_least(1);
  line.integer("measure", a.measure, "N",
               "trains some iterations in the best N placements and in those of the strategies, "
               "and prints the times beside the predicted ones")
      .at_least(0);
  line.integer("iterations", a.iterations, "N",
               "iterations of such a trial, timed from the third on")
      .at_least(kFirstTimedIteration);
  line.text("output", a.output, "FILE", "writes the best placement, for Placement/File");
  line.text("json", a.json, "FILE", "writes one JSON line per placement");
}

param::ParamFile file_of(const Arguments& a) {
  param::ParamFile file = read_run_file(a.run_file, a.assignments);
  // Whatever placement it has so far, perhaps that of a plan which is to be made anew.
  file.set("Placement/Strategy=flattening");
  file.set("Placement/File=''");
  return file;
}

// Throws Error if the ranks that are started, or the paths, cannot give what is asked for.
void require_possible(const Arguments& a, const Session& session) {
  const auto needs_ranks = [&](const char* option, const std::string& why) {
    TAPER_VALIDATE(a.ranks == 0 || a.ranks == session.size(),
                   option << " needs as many ranks as --ranks names (" << why
                          << "); start them, or leave one of the options out");
  };
  if (a.measure > 0)
    needs_ranks("--measure",
                std::to_string(a.ranks) + "; started are " + std::to_string(session.size()));
  if (!a.output.empty())
    needs_ranks("--output", "a plan is valid for the machine and the ranks of its profile");
  if (session.rank() != 0) return;
  std::vector<std::filesystem::path> inputs(a.plan.profiles.begin(), a.plan.profiles.end());
  inputs.emplace_back(a.run_file);
  for (const std::string& path : {a.output, a.json})
    if (!path.empty()) require_writable(path, inputs);
}

}  // namespace

int run_plan(int argc, char** argv) {
  Arguments a;
  param::CommandLine line("taper plan",
                          "Searches the placement of a run's models that is fastest by measured "
                          "profiles (doc/placement.md).");
  declare(line, a);
  if (line.parse_or_print_help(argc, argv)) return 0;
  require_no_problems(a.plan.problems(), "the arguments");
  RunOptions run;
  param::Schema schema;
  describe(schema, run);
  const auto spawner = make_spawner([&] { return read_rewards(file_of(a)); });
  const StopRequest stop;
  Session session(argc, argv);
  read_run(schema, file_of(a));
  require_possible(a, session);
  const int size = a.ranks == 0 ? session.size() : a.ranks;
  const bool is_here = size == session.size();
  // taper train demands them of the ranks, wherever the plan places the models.
  const std::vector<int> degrees = degrees_of(placed(run, {}), size);
  const DivisorChain chain = chain_with(size, degrees);
  Ranks& ranks = session.start(is_here ? degrees : std::vector<int>{}, run.hang_seconds, ".");
  set_precision(ranks.exec, run.model.precision());
  require_equal(ranks, "the configuration", schema.current_yaml());
  const ModelFiles policy(run.model.directory, "Model/Directory");
  const ProfileIdentity here = gather_identity(policy, run.model.type, ranks);
  if (is_here) a.plan.here = here;
  PlannedPlacements plans;
  on_rank_0(ranks, [&] { plans = plan_run(run, chain, a.plan); });
  const MakeTrainJob make = [&](const RunOptions& options) {
    return std::make_unique<TrainJob>(options, "", ranks, stop, spawner.get());
  };
  bool is_whole = true;
  if (is_here) {
    drop_too_large(plans, run, ranks, a.plan, make);
    is_whole = a.measure == 0 || time_placements(plans, run, ranks, make, a.measure, a.iterations);
  }
  on_rank_0(ranks, [&] {
    std::fputs(to_table(plans).c_str(), stdout);
    if (!a.json.empty()) write_file_atomically(a.json, to_json_lines(plans));
    if (a.output.empty()) return;
    write_placement_file(a.output, placement_file(run, chain, plans));
    TAPER_INFO("written to " << path_text(a.output)
                             << "; to use it: Placement/Strategy=plan and Placement/File="
                             << a.output);
  });
  return session.finish(is_whole ? ExitCode::kDone : ExitCode::kStoppedEarly);
}

}  // namespace taper
