// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "Commands.hpp"
#include "RunArguments.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "io/AtomicFile.hpp"
#include "io/OutputPath.hpp"
#include "param/CommandLine.hpp"
#include "param/Schema.hpp"
#include "profile/RunIdentity.hpp"
#include "session/Session.hpp"
#include "session/StopRequest.hpp"
#include "study/PlanJob.hpp"
#include "train/RunOptions_params.hpp"
#include "workers/Spawner.hpp"

namespace taper {
namespace {

struct Arguments {
  std::string run_file, output, json;
  std::vector<std::string> assignments;
  int ranks = 0;       // 0: those that are started
  int measure = 0;     // placements that are tried
  int iterations = 3;  // of a trial
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
  line.integer("iterations", a.iterations, "N", "iterations of such a trial").at_least(2);
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

// Tries the strategies, then the best ones, beside the run's directory. False if a stop request
// came.
bool measure(PlannedPlacements& plans, const Arguments& a, const RunOptions& run,
             const Ranks& ranks, const MakeTrainJob& make) {
  const std::string directory = without_end_slash(run.output).string() + ".trial";
  const auto trial = [&](std::vector<PlannedPlacement> PlannedPlacements::*list, int most) {
    const auto count = from_rank_0(ranks, [&] { return static_cast<int>((plans.*list).size()); });
    for (int i = 0; i < std::min(count, most); ++i) {
      const auto settings = from_rank_0(ranks, [&] { return (plans.*list)[i].settings; });
      std::int64_t bytes = 0;
      const std::string lack = memory_problem(placed(run, settings), ranks, make, bytes);
      if (ranks.rank() == 0) (plans.*list)[i].rank_bytes = bytes;
      if (!lack.empty()) {
        if (ranks.rank() == 0) TAPER_WARN("not tried: " << (plans.*list)[i].name << ": " << lack);
        continue;
      }
      const auto seconds =
          time_placement(placed(run, settings), ranks, make, directory, a.iterations);
      if (!seconds) return false;
      if (ranks.rank() == 0) (plans.*list)[i].measured_s = seconds;
    }
    return true;
  };
  return trial(&PlannedPlacements::strategies,
               static_cast<int>(named_placement_strategies().size())) &&
         trial(&PlannedPlacements::found, a.measure);
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
  const auto spawner = make_spawner([&] {
    RunOptions other;
    param::Schema same;
    describe(same, other);
    read_run(same, file_of(a));
    return std::vector<RewardOptions>(other.rewards.begin(), other.rewards.end());
  });
  const StopRequest stop;
  Session session(argc, argv);
  read_run(schema, file_of(a));
  const int size = a.ranks == 0 ? session.size() : a.ranks;
  TAPER_VALIDATE(a.measure == 0 || size == session.size(),
                 "--measure needs as many ranks as --ranks names (" << a.ranks << "; started are "
                                                                    << session.size()
                                                                    << "); start them, or leave "
                                                                       "one of the options out");
  TAPER_VALIDATE(a.output.empty() || size == session.size(),
                 "--output needs as many ranks as --ranks names (a plan is valid for the machine "
                 "and the ranks of its profile); start them, or leave one of the options out");
  if (session.rank() == 0)
    for (const std::string& path : {a.output, a.json})
      if (!path.empty()) require_writable(path);
  Ranks& ranks = session.start({}, run.hang_seconds, ".");
  set_numbers(ranks.exec, run.model.arithmetic, run.model.kv_type());
  require_equal(ranks, "the configuration", schema.current_yaml());
  const DivisorChain chain = DivisorChain::of(size);
  const ModelFiles policy(run.model.directory, "Model/Directory");
  const ProfileIdentity here = gather_identity(policy, run.model.type, ranks);
  if (size == session.size()) a.plan.here = here;
  PlannedPlacements plans;
  on_rank_0(ranks, [&] { plans = plan_run(run, chain, a.plan); });
  const MakeTrainJob make = [&](const RunOptions& options) {
    return std::make_unique<TrainJob>(options, "", ranks, stop, spawner.get());
  };
  bool is_whole = true;
  if (size == session.size()) {
    drop_too_large(plans, run, ranks, a.plan, make);
    is_whole = a.measure == 0 || measure(plans, a, run, ranks, make);
  }
  on_rank_0(ranks, [&] {
    std::fputs(to_table(plans).c_str(), stdout);
    if (!a.json.empty()) write_file_atomically(a.json, to_json_lines(plans));
    if (a.output.empty()) return;
    write_plan(a.output, plan_file(run, chain, plans));
    TAPER_INFO("written to " << path_text(a.output)
                             << "; to use it: Placement/Strategy=plan and Placement/File="
                             << a.output);
  });
  return session.finish(is_whole ? ExitCode::kDone : ExitCode::kStoppedEarly);
}

}  // namespace taper
