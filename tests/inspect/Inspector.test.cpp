// SPDX-License-Identifier: Apache-2.0
#include "inspect/Inspector.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "inspect/SmallRun.hpp"
#include "io/FileLock.hpp"
#include "io/Hdf5File.hpp"
#include "results/RunDirectory.hpp"
#include "support/Messages.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("of a run all parts are shown and complete") {
  const SmallRun run;
  const Inspection found = inspect(run.directory);
  INFO(found.text);
  for (const char* part :
       {"metrics.jsonl: 2 lines, iterations 1 to 2\n", "checkpoints/iter_000002: complete\n",
        "rollouts: 1 file, iterations 2 to 2, 2 samples: complete\n", "run.h5:\n", "lr (2)"})
    CHECK_THAT(found.text, ContainsSubstring(part));
  CHECK(found.problems.empty());
  CHECK(found.advice.empty());
}

TEST_CASE("one damaged file of a run does not hide another") {
  const SmallRun run;
  spill(run.checkpoint / "model.safetensors", "weights of iteration 3");
  spill(run.rollouts, "no HDF5 file");
  spill(run.directory / "status.json", "{");
  spill(run.run_file, "no HDF5 file");
  Inspection found = inspect(run.directory);
  INFO(found.text);
  REQUIRE(found.problems.size() == 4);
  CHECK_THAT(found.problems[0], ContainsSubstring("status.json is not valid JSON"));
  CHECK_THAT(found.problems[1], ContainsSubstring("iter_000002/model.safetensors is damaged"));
  CHECK_THAT(found.problems[2], ContainsSubstring("rollouts/iter_000002.h5 is damaged"));
  CHECK_THAT(found.problems[3], ContainsSubstring("run.h5 is damaged"));
  for (const char* part : {"status.json: DAMAGED", "metrics.jsonl: 2 lines", "iter_000002: DAMAGED",
                           "1 file DAMAGED", "run.h5: DAMAGED"})
    CHECK_THAT(found.text, ContainsSubstring(part));
  REQUIRE(found.advice.size() == 2);
  CHECK_THAT(found.advice[0], ContainsSubstring("passes damaged checkpoints over"));
  CHECK_THAT(found.advice[1], ContainsSubstring("--repair " + run.directory.string()));

  spill(run.log, "broken\n");  // nothing is left to repair from
  found = inspect(run.directory);
  CHECK(found.problems.size() == 5);
  CHECK(found.advice.size() == 1);
}

TEST_CASE("a run whose status says that it runs was killed where no job has its lock") {
  const Scratch scratch;
  const std::string killed = "no job is at work here";
  spill(scratch / "status.json", "{\"state\": \"running\", \"iteration\": 2}");
  CHECK_THAT(inspect(scratch.path()).text,
             ContainsSubstring("state: \"running\"\n") && ContainsSubstring(killed));
  {
    FileLock lock(RunDirectory(scratch.path()).lock(), "a run");
    REQUIRE(lock.try_take());
    CHECK_THAT(inspect(scratch.path()).text, !ContainsSubstring(killed));
  }
  spill(scratch / "status.json", "{\"state\": \"completed\", \"iteration\": 2}");
  CHECK_THAT(inspect(scratch.path()).text, !ContainsSubstring(killed));
  spill(scratch / "metrics.jsonl", "broken\n");
  CHECK_THAT(inspect(scratch.path()).text, ContainsSubstring("metrics.jsonl: DAMAGED") &&
                                               !ContainsSubstring("metrics.jsonl: metrics.jsonl"));
}

TEST_CASE("a checkpoint agrees with its manifest, or says what that means") {
  const SmallRun run;
  Inspection found = inspect(run.checkpoint);
  CHECK_THAT(found.text, ContainsSubstring("after iteration 2; all files agree") &&
                             ContainsSubstring("  model.safetensors (22 B)\n"));
  CHECK(found.problems.empty());
  fs::remove(run.checkpoint / "model.safetensors");
  found = inspect(run.checkpoint);
  CHECK_THAT(found.text, ContainsSubstring("checkpoint, DAMAGED"));
  REQUIRE(found.problems.size() == 1);
  CHECK_THAT(found.problems[0], ContainsSubstring("/model.safetensors is missing"));
  REQUIRE(found.advice.size() == 1);
  CHECK_THAT(found.advice[0], ContainsSubstring("does not start from this checkpoint"));
}

TEST_CASE("a model is told by its sizes, a file by its name and content") {
  const Inspection model = inspect(TAPER_GOLDEN_DIR "/models/llama_a");
  CHECK_THAT(model.text,
             ContainsSubstring("family llama: ") &&
                 ContainsSubstring("2 layers, hidden size 64, 4 query and 4 KV heads of 16, MLP "
                                   "96, vocabulary 320 (tied), context 256\n") &&
                 ContainsSubstring("  model-00001-of-00002.safetensors ("));
  const Scratch scratch;
  const fs::path file = scratch / "list.json";
  spill(file, "[1]");
  CHECK(inspect(file).text == file.string() + "\nJSON: [1 item]\n");
}

TEST_CASE("what is missing or unknown is refused") {
  const Scratch scratch;
  CHECK_THAT(message_of([&] { inspect(scratch / "none"); }), ContainsSubstring("does not exist"));
  CHECK_THAT(message_of([&] { inspect(scratch.path()); }),
             ContainsSubstring("is not a run, checkpoint or model directory"));
}

TEST_CASE("run.h5 is rebuilt from the metrics log, unless a job is at work") {
  const SmallRun run;
  spill(run.run_file, "no HDF5 file");
  {
    FileLock lock(RunDirectory(run.directory).lock(), "a run");
    REQUIRE(lock.try_take());
    CHECK_THAT(message_of([&] { repair_run(run.directory); }),
               ContainsSubstring("is in use by another job"));
  }
  CHECK(slurp(run.run_file) == "no HDF5 file");
  CHECK(repair_run(run.directory) ==
        run.run_file.string() + ": rebuilt from metrics.jsonl, 2 lines, iterations 1 to 2\n");
  CHECK(Hdf5File::open_read(run.run_file).read<double>("/metrics/actor/lr").values ==
        std::vector<double>{0.25, 0.5});
  CHECK(inspect(run.directory).problems.empty());
  CHECK(!fs::exists(RunDirectory(run.directory).lock()));
  fs::remove(run.log);
  CHECK_THAT(message_of([&] { repair_run(run.directory); }),
             ContainsSubstring("metrics.jsonl does not exist"));
}
