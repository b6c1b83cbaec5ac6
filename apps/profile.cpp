// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include "Arguments.hpp"
#include "Commands.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "profile/ProfileFile.hpp"
#include "profile/ProfileJob.hpp"
#include "session/Session.hpp"
#include "shard/RankGrid.hpp"

namespace taper {
namespace {

// "2x1,1x2" -> 2, 1: the degrees of layouts of so many ranks.
std::vector<int> degrees_of(const std::vector<std::string>& layouts, int ranks) {
  std::vector<int> degrees;
  for (const std::string& text : layouts) {
    const RankGrid grid = parse_rank_grid(text);
    TAPER_VALIDATE(grid.ranks() == ranks,
                   "--layouts " << text << " is for " << grid.ranks() << " ranks (there are "
                                << ranks << "); start that many ranks, or leave --layouts out");
    degrees.push_back(grid.tp);
  }
  return degrees;
}

}  // namespace

int run_profile(int argc, char** argv) {
  ProfileOptions options;
  std::string model;
  std::vector<std::string> layouts;
  double hang_seconds = kHangSeconds;
  Numbers numbers;
  param::CommandLine line("taper profile",
                          "Measures, for adaptive runs, how long generation steps take on these "
                          "ranks at each tensor-parallel degree, and what changing the degree "
                          "costs. After an interruption the same command resumes.");
  line.text("model", model, "DIR", "Hugging Face directory: config.json, *.safetensors").required();
  line.text("output", options.output, "FILE", "the profile, HDF5");
  declare_numbers(line, numbers);
  line.list("layouts", layouts, "TPxDP,...",
            "layouts to measure; default: all degrees of the divisor chain that the model allows");
  line.integer("max-positions", options.probe.max_positions, "N",
               "longest sequence; 0: the model's, at most 2048")
      .at_least(0);
  line.integer("max-batch", options.probe.max_batch, "N",
               "largest batch per rank; a replica of T ranks is measured with up to T times as "
               "many sequences")
      .at_least(1);
  line.integer("step-rows", options.probe.step_rows, "N",
               "tokens per step, decode and prefill together")
      .at_least(1);
  line.number("kv-memory-mb", options.probe.kv_memory_mb, "MB",
              "largest KV cache per rank and degree in MiB; limits the summed context")
      .above(0);
  line.number("budget", options.budget, "S",
              "seconds of measuring; 0: as planned, 45 to 300 depending on the model's speed. With "
              "too few the profile is incomplete, with a warning, but each point of a coarse grid "
              "is measured at least twice; repeat the command to measure for the same time again")
      .at_least(0);
  line.flag("passes", options.passes,
            "also measures passes and optimizer steps of training, which taper plan needs; an "
            "existing profile gets them in addition");
  line.flag("fresh", options.fresh, "discards what an earlier start has measured");
  declare_hang_seconds(line, hang_seconds);
  if (line.parse_or_print_help(argc, argv)) return 0;
  check_numbers(numbers);
  options.probe.type = numbers.type;
  Session session(argc, argv);
  options.degrees = degrees_of(layouts, session.size());
  ModelFiles files(model, "--model");
  Ranks& ranks = session.start(options.degrees, hang_seconds, ".");
  set_precision(ranks.exec, numbers.precision());
  ProfileJob job(options, files, ranks);
  TAPER_INFO("memory of rank 0\n" << job.memory_plan().table());
  const LatencyProfile profile = job.run();
  if (ranks.rank() != 0) return 0;
  std::fputs(to_table(profile).c_str(), stdout);
  std::fflush(stdout);
  if (!profile.is_complete())
    TAPER_WARN(path_text(options.output) << " is " << completeness_problem(profile));
  if (const std::string noise = noise_problem(profile); !noise.empty())
    TAPER_WARN(path_text(options.output) << " is " << noise);
  return 0;
}

}  // namespace taper
