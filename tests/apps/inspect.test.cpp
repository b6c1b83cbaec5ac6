// SPDX-License-Identifier: Apache-2.0
//
// taper profile, inspect and report on good and damaged files.
#include <tuple>

#include "Commands.hpp"
#include "io/Hdf5File.hpp"
#include "results/MetricsLog.hpp"

using namespace taper;
using namespace taper::commands;

namespace {

void flip_middle(const fs::path& file) {
  std::string bytes = slurp(file);
  bytes[bytes.size() / 2] ^= 1;
  spill(file, bytes);
}

}  // namespace

TEST_CASE("profile writes a file that inspect prints, and does not measure it twice") {
  const Scratch scratch;
  const std::string words = "profile --model " + scratch / "model" + " --output " +
                            scratch / "p.h5" + " --max-positions 64 --max-batch 2 --kv-memory-mb 4";
  Outcome outcome = run(words);
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("decode steps"));
  CHECK_THAT(outcome.text, !ContainsSubstring("incomplete"));
  CHECK(!fs::exists(scratch / "p.h5.partial"));
  outcome = run("inspect " + scratch / "p.h5");
  CHECK(outcome.code == 0);
  for (const char* part : {"latency profile of 1 rank, 1 per node", "checksum is right",
                           "decode steps", "hidden ", "library MPICH", "measured: complete"})
    CHECK_THAT(outcome.text, ContainsSubstring(part));
  outcome = run(words);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("is complete"));
  outcome = run("inspect --validate " + scratch / "p.h5");
  INFO(outcome.text);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("p.h5: taper-profile 2, 33 datasets"));

  std::string damaged = slurp(scratch / "p.h5");
  // Not every byte means something.
  for (std::size_t i = damaged.size() / 4; i < damaged.size() * 3 / 4; i += 97) damaged[i] ^= 0x55;
  spill(scratch / "damaged.h5", damaged);
  CHECK(run("inspect " + scratch / "damaged.h5").code == 2);
}

TEST_CASE("a budget that is too small is told, and the same command goes on") {
  const Scratch scratch;
  const std::string words = "profile --model " + scratch / "model" + " --output " +
                            scratch / "p.h5" + " --max-positions 64 --max-batch 2 --kv-memory-mb 4";
  Outcome outcome = run(words + " --budget 0.001");
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("warning: " + scratch / "p.h5" + " is incomplete"));
  CHECK(fs::exists(scratch / "p.h5.partial"));
  CHECK_THAT(run("inspect " + scratch / "p.h5").text, ContainsSubstring("measured: incomplete, "));

  spill(scratch / "in.jsonl", "{\"tokens\": [5, 9, 7]}\n");
  outcome = run(scratch.generate("--mode advise --profile " + scratch / "p.h5"));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("p.h5 is incomplete"));

  outcome = run(words);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("resuming after"));
  CHECK_THAT(outcome.text, !ContainsSubstring("incomplete"));
  CHECK(!fs::exists(scratch / "p.h5.partial"));
}

TEST_CASE("profile refuses what cannot be measured") {
  const Scratch scratch;
  const auto words = [&](const std::string& model, const std::string& output) {
    return "profile --budget 0.001 --model " + model + " --output " + output;
  };
  scratch.refuses("profile", {"--model"});
  scratch.refuses(words(scratch / "nothing", scratch / "p.h5"), {"nothing"});
  scratch.refuses(words(scratch / "model", scratch / "model"), {"is a directory"});
  scratch.refuses(words(scratch / "model", scratch / "model/config.json/p.h5"),
                  {"p.h5", "cannot be written"});
  const std::string good = words(scratch / "model", scratch / "p.h5");
  scratch.refuses(good + " --layouts 2x1", {"2x1", "2 ranks"});
  scratch.refuses(good + " --layouts wide", {"wide"});
  scratch.refuses(good + " --max-positions 5", {"--max-positions"});
  scratch.refuses(good + " --max-positions 100000", {"positions"});
  scratch.refuses(good + " --kv-memory-mb 0.001", {"--kv-memory-mb is 0.001"});
  scratch.refuses(good + " --budget -1", {"budget"});
  CHECK(!fs::exists(scratch / "p.h5"));
}

TEST_CASE("inspect shows what there is, and fails where nothing is") {
  const Scratch scratch;
  const Outcome model = run("inspect " + scratch / "model");
  CHECK(model.code == 0);
  CHECK_THAT(model.text, ContainsSubstring("llama"));
  const Outcome config = run("inspect " + scratch / "model/config.json");
  CHECK(config.code == 0);
  CHECK_THAT(config.text, ContainsSubstring("JSON: {"));
  CHECK(run("inspect " + scratch / "nothing").code == 2);
  CHECK(run("inspect").code == 2);
}

TEST_CASE("a run file is rebuilt from the metrics log") {
  const Scratch scratch;
  {
    MetricsLog log(scratch / "metrics.jsonl", OpenMode::kTruncate);
    for (int i = 1; i <= 3; ++i) log.append({{"critic/score/mean", 0.5 * i}}, i);
  }
  spill(scratch / "run.h5", "no HDF5 file");
  const Outcome damage = run("inspect " + scratch.path().string());
  CHECK(damage.code == 2);
  CHECK_THAT(damage.text, ContainsSubstring("1 damaged or unreadable file (listed above); taper "
                                            "inspect --repair " +
                                            scratch.path().string() + " rebuilds run.h5") &&
                              !ContainsSubstring("passes damaged checkpoints"));
  const Outcome outcome = run("inspect --repair " + scratch.path().string());
  INFO(outcome.text);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text,
             ContainsSubstring("run.h5: rebuilt from metrics.jsonl, 3 lines, iterations 1 to 3") &&
                 !ContainsSubstring("metrics/"));  // not the whole run
  CHECK(!fs::exists(scratch / "run.lock"));
  CHECK(Hdf5File::open_read(scratch / "run.h5").read<double>("/metrics/critic/score/mean").values ==
        std::vector<double>{0.5, 1.0, 1.5});
  CHECK(run("inspect " + scratch.path().string()).code == 0);
}

TEST_CASE("inspect checks the runs and checkpoints of taper train") {
  const TrainedRun trained;
  Outcome outcome = run("inspect " + trained.directory);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text,
             ContainsSubstring("iter_000001: complete") && ContainsSubstring("response_length") &&
                 ContainsSubstring("completed") &&
                 ContainsSubstring("rollouts: 1 file, iterations 1 to 1, 4 samples: complete"));
  outcome = run("inspect " + trained.checkpoint.string());
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("after iteration 1"));
  CHECK(run("inspect " + trained.rollouts).code == 0);
}

TEST_CASE("inspect shows responses as text, by the model of the run or a named one") {
  const TrainedRun trained;
  const std::string model = trained.scratch / "model";
  for (const std::string& path :
       {trained.rollouts, trained.directory, trained.rollouts + " --model " + model}) {
    const Outcome outcome = run("inspect " + path + " --text 3");
    INFO(outcome.text);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.text, ContainsSubstring("iteration 1, 4 samples") &&
                                 ContainsSubstring("prompt 1, sample 0: score 0") &&
                                 !ContainsSubstring("prompt 1, sample 1") &&
                                 ContainsSubstring("=\n[response]\n"));  // the prompt is a task's
  }
  CHECK(run("inspect " + model + " --text 1").code == 2);
  CHECK(run("inspect " + trained.rollouts + " --model x").code == 2);
  // A run that was moved, or looked at from elsewhere: its checkpoint has the tokenizer.
  fs::rename(model, model + ".away");
  CHECK(run("inspect " + trained.directory + " --text 1").code == 0);
  fs::remove_all(trained.checkpoint);
  CHECK_THAT(run("inspect " + trained.directory + " --text 1").text,
             ContainsSubstring(
                 "does not exist here, and there is no checkpoint; name the model with --model"));
}

TEST_CASE("inspect names a damaged rollout file") {
  const TrainedRun trained;
  flip_middle(trained.rollouts);
  fs::resize_file(trained.rollouts, fs::file_size(trained.rollouts) - 8);
  for (const std::string& path : {trained.directory, trained.rollouts + " --text 1"}) {
    const Outcome outcome = run("inspect " + path);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.text, ContainsSubstring("iter_000001.h5"));
  }
}

TEST_CASE("inspect says what damaged weights mean for a checkpoint, and for a run") {
  const TrainedRun trained;
  flip_middle(trained.checkpoint / "model.safetensors");
  const std::string others = "taper train passes damaged checkpoints over",
                    this_one = "taper train does not start from this checkpoint";
  for (const auto& [path, advice, no_advice] :
       {std::tuple(trained.checkpoint.string(), this_one, others),
        std::tuple(trained.directory, others, this_one)}) {
    const Outcome outcome = run("inspect " + path);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.text,
               ContainsSubstring("model.safetensors") &&
                   ContainsSubstring("1 damaged or unreadable file (listed above); " + advice) &&
                   !ContainsSubstring(no_advice) && !ContainsSubstring("--repair"));
  }
}

TEST_CASE("paths with blanks stand in quotes") {
  const Scratch scratch;
  const auto quoted = [&](const std::string& name) { return "'" + scratch / name + "'"; };
  spill(scratch / "my notes.txt", "hello");
  scratch.refuses("inspect " + quoted("my notes.txt"), {quoted("my notes.txt") + " is a file of"});
  scratch.refuses("inspect " + quoted("no notes"), {quoted("no notes") + " does not exist"});
  spill(scratch / "my notes.h5", "hello");
  scratch.refuses("inspect " + quoted("my notes.h5"), {quoted("my notes.h5") + " is damaged"});
  spill(scratch / "in.jsonl", "{\"tokens\": [5, 9]}\n");
  const Outcome outcome = run("score --model " + scratch / "model" + " --input " +
                              scratch / "in.jsonl" + " --output " + quoted("my scores.jsonl"));
  INFO(outcome.text);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("results in " + quoted("my scores.jsonl")));
}

TEST_CASE("report names the interpreter that is missing") {
  const Outcome outcome = run("report /nowhere", "TAPER_PYTHON=/nowhere/python");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.text,
             ContainsSubstring("/nowhere/python") && ContainsSubstring("TAPER_PYTHON"));
}
