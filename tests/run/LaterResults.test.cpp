// SPDX-License-Identifier: Apache-2.0
#include "run/LaterResults.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "results/RunFile.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Run {
  // What iterations `first` to `last` leave, without checkpoints.
  Run(int first, int last) {
    fs::create_directories(scratch / "rollouts");
    std::string lines;
    for (int i = first; i <= last; ++i) {
      lines += "{\"step\": " + std::to_string(i) + "}\n";
      add_rollouts(i);
    }
    spill(scratch / "metrics.jsonl", lines);
    spill(scratch / "run.h5", "");
  }
  void add_rollouts(int iteration) const {
    spill(scratch / "rollouts" / ("iter_00000" + std::to_string(iteration) + ".h5"), "");
  }
  // With a run.h5 that tells the settings; as made, its run.h5 is damaged.
  void had(int every, int iterations) const {
    RunFile file(scratch / "run.h5");
    file.set_config("Checkpoint:\n  Every: " + std::to_string(every) +
                    "\nTraining:\n  Iterations: " + std::to_string(iterations) + "\n");
    file.save();
  }

  Scratch scratch;
};

CheckpointSchedule every(int iterations) {
  return {iterations, 100};
}

}  // namespace

TEST_CASE("what comes after an iteration is listed") {
  const Run run(1, 4);
  fs::create_directories(run.scratch / "checkpoints/iter_000003");
  CHECK(later_results(run.scratch.path(), 0, "iteration") ==
        "checkpoints/iter_000003; rollouts of iterations 1 to 4; metrics of iterations 1 to 4");
  CHECK(later_results(run.scratch.path(), 3, "iteration") ==
        "rollouts of iteration 4; metrics of iteration 4");
  CHECK(later_results(run.scratch.path(), 4, "iteration").empty());
  CHECK(later_results(run.scratch / "new", 0, "iteration").empty());
  CHECK(later_results(run.scratch.path(), 2, "step") ==
        "checkpoints/iter_000003; rollouts of steps 3 to 4; metrics of steps 3 to 4");
  fs::remove(run.scratch / "metrics.jsonl");
  CHECK_THAT(later_results(run.scratch.path(), 0, "iteration"), ContainsSubstring("run.h5"));
  spill(run.scratch / "metrics.jsonl", "broken\n");
  CHECK_THAT(later_results(run.scratch.path(), 0, "iteration"),
             ContainsSubstring("cannot be read"));
}

TEST_CASE("results beyond the first checkpoint are told from those of a run killed before it") {
  const Run run(1, 3);
  const fs::path& output = run.scratch.path();
  CHECK_NOTHROW(require_no_lost_checkpoints(run.scratch / "new", every(1), "iteration"));
  CHECK_NOTHROW(require_no_lost_checkpoints(output, every(4), "iteration"));
  // Killed while it saved its first checkpoint: before and after the metrics were written.
  fs::create_directories(output / "checkpoints/iter_000003.writing");
  CHECK_NOTHROW(require_no_lost_checkpoints(output, every(3), "iteration"));
  fs::remove_all(output / "checkpoints");
  run.add_rollouts(4);
  CHECK_NOTHROW(require_no_lost_checkpoints(output, every(4), "iteration"));
  CHECK_NOTHROW(require_no_lost_checkpoints(output, every(0), "iteration"));  // one at the end
  CHECK_THROWS_WITH(require_no_lost_checkpoints(output, every(3), "iteration"),
                    ContainsSubstring("up to iteration 3") &&
                        ContainsSubstring("or Checkpoint/Every was") &&
                        ContainsSubstring("--resume none"));
  run.add_rollouts(5);
  CHECK_THROWS_WITH(require_no_lost_checkpoints(output, every(4), "iteration"),
                    ContainsSubstring("up to iteration 4"));
  spill(output / "metrics.jsonl", "{\"step\": 1}\nbroken\n");
  CHECK_THROWS_WITH(require_no_lost_checkpoints(output, every(9), "iteration"),
                    ContainsSubstring("metrics.jsonl:2"));
}

TEST_CASE("the settings of the run that left the results decide, not those of the next one") {
  const Run run(1, 5);
  const fs::path& output = run.scratch.path();
  run.had(10, 100);
  CHECK_NOTHROW(require_no_lost_checkpoints(output, every(2), "iteration"));
  run.had(2, 100);
  CHECK_THROWS_WITH(require_no_lost_checkpoints(output, every(10), "iteration"),
                    ContainsSubstring("in its run.h5 it saved one after iteration 2:"));
  run.had(10, 5);  // one at the end
  CHECK_THROWS_WITH(require_no_lost_checkpoints(output, every(10), "iteration"),
                    ContainsSubstring("in its run.h5 it saved one after iteration 5:"));
}

TEST_CASE("a run that began with another one's checkpoint has one at any time") {
  const Run run(5, 6);
  CHECK_THROWS_WITH(require_no_lost_checkpoints(run.scratch.path(), every(100), "iteration"),
                    ContainsSubstring("results from iteration 5 on"));
}

TEST_CASE("a first line that was deleted from the metrics is no other run's checkpoint") {
  const Run run(1, 3);
  spill(run.scratch / "metrics.jsonl", "{\"step\": 2}\n{\"step\": 3}\n");
  CHECK_NOTHROW(require_no_lost_checkpoints(run.scratch.path(), every(100), "iteration"));
}

TEST_CASE("fine-tuning saves checkpoints by their distance only, and may count from 0") {
  const Run run(0, 5);
  const fs::path& output = run.scratch.path();
  fs::remove_all(output / "rollouts");
  CHECK_NOTHROW(require_no_lost_checkpoints(output, {0, 0}, "step"));
  CHECK_NOTHROW(require_no_lost_checkpoints(output, {6, 0}, "step"));
  CHECK_THROWS_WITH(require_no_lost_checkpoints(output, {5, 0}, "step"),
                    ContainsSubstring("has results up to step 5 but no checkpoint (this run "
                                      "would have saved one after step 5:"));
  run.had(4, 2);
  CHECK_THROWS_WITH(require_no_lost_checkpoints(output, {0, 0}, "step"),
                    ContainsSubstring("in its run.h5 it saved one after step 4:"));
  run.had(0, 2);
  CHECK_NOTHROW(require_no_lost_checkpoints(output, {5, 0}, "step"));
}
