// SPDX-License-Identifier: Apache-2.0
//
// taper inspect --validate and --schema.
#include "Commands.hpp"
#include "io/Hdf5File.hpp"
#include "results/RunFile.hpp"

using namespace taper;
using namespace taper::commands;

TEST_CASE("a run of taper train is as in the schema") {
  const TrainedRun trained;
  Outcome outcome = run("inspect --validate " + trained.directory);
  INFO(outcome.text);
  CHECK(outcome.code == 0);
  for (const char* part :
       {"run.h5: taper-run 2, ", "metrics.jsonl: 1 line",
        "run/rollouts: 1 file of taper-rollouts: as in the schema", "state.h5: taper-state 1, "})
    CHECK_THAT(outcome.text, ContainsSubstring(part));
  CHECK_THAT(outcome.text, !ContainsSubstring("note: ") && !ContainsSubstring("FAULT: "));
  for (const std::string& path :
       {trained.directory + "/run.h5", trained.rollouts, trained.checkpoint.string(),
        (trained.checkpoint / "state.h5").string()})
    CHECK(run("inspect --validate " + path).code == 0);
}

TEST_CASE("validation finds a flipped bit in the state of a checkpoint by the file's own sums") {
  const TrainedRun trained;
  const fs::path state = trained.checkpoint / "state.h5";
  const std::string tensor = Hdf5File::open_read(state).datasets("/second").front();
  const float first =
      Hdf5File::open_read(state).read<float>("/master" + tensor.substr(7)).values[0];
  std::string bytes = slurp(state);
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(&first), sizeof first));
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  spill(state, bytes);
  const Outcome outcome = run("inspect --validate " + state.string());
  INFO(outcome.text);
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text, ContainsSubstring("FAULT: " + state.string() + ": /master") &&
                               ContainsSubstring(": unit ") &&
                               ContainsSubstring("is damaged (its checksum differs)") &&
                               ContainsSubstring("1 fault (listed above)"));
}

TEST_CASE("schemas are printed, and validation needs something that has one") {
  const Outcome all = run("inspect --schema all");
  CHECK(all.code == 0);
  for (const char* part : {"## run.h5", "## profile.h5", "`/log_probs/offsets`",
                           "`/master/<tensor>`", "`/layout_switches`: "})
    CHECK_THAT(all.text, ContainsSubstring(part));
  CHECK(run("inspect --schema taper-run").text == run("inspect --schema run").text);
  const Scratch scratch;
  scratch.refuses("inspect --schema other", {"unknown format other", "rollouts"});
  scratch.refuses("inspect --schema run " + scratch / "model", {"give either PATH"});
  scratch.refuses("inspect --validate", {"give either PATH"});
  scratch.refuses("inspect --validate " + scratch / "model", {"nothing to validate"});
  scratch.refuses("inspect --validate " + scratch / "nothing", {"does not exist"});
  spill(scratch / "text.h5", "hello");
  scratch.refuses("inspect --validate " + scratch / "text.h5", {"text.h5: it cannot be read"});
}

TEST_CASE("validation of a file with a flipped byte ends as its words say") {
  const Scratch scratch;
  const fs::path file = scratch.path() / "run.h5";
  RunFile out(file);
  out.set_config("Run: {Seed: 1}");
  for (int i = 1; i <= 3; ++i) out.add_metrics(i, {{"critic/score/mean", 0.25 * i}});
  out.save();
  const std::string good = slurp(file);
  int found = 0;
  constexpr int kFlips = 60;
  for (int i = 0; i < kFlips; ++i) {
    std::string bytes = good;
    bytes[(static_cast<std::size_t>(i) * 7919 + 8) % good.size()] ^= static_cast<char>(1 << i % 8);
    spill(file, bytes);
    const Outcome outcome = run("inspect --validate " + file.string());
    INFO(i << ": " << outcome.text);
    // HDF5 itself ends the process on some damaged structures: no word of ours then.
    if (outcome.code != 0 && outcome.code != 2) continue;
    CHECK(outcome.code == (outcome.text.find("FAULT: ") != std::string::npos ? 2 : 0));
    found += outcome.code == 2 ? 1 : 0;
  }
  CHECK(found > 0);
}
