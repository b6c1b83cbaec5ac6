// SPDX-License-Identifier: Apache-2.0
#include "inspect/FileInspector.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "io/Hdf5File.hpp"
#include "profile/ProfileFile.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"
#include "support/synthetic_profile.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

void check_shown(const fs::path& file, const std::vector<std::string>& parts) {
  const std::string text = inspect_file(file);
  INFO(text);
  for (const auto& part : parts) CHECK_THAT(text, ContainsSubstring(part));
}

void check_refused(const fs::path& file, const std::vector<std::string>& parts) {
  const std::string text = message_of([&] { inspect_file(file); });
  INFO(text);
  CHECK_THAT(text, !ContainsSubstring("HDF5 file ("));
  for (const auto& part : parts) CHECK_THAT(text, ContainsSubstring(part));
}

}  // namespace

TEST_CASE("weights are listed with their types and shapes, and cut ones are refused") {
  const Scratch scratch;
  const fs::path weights = scratch / "model.safetensors";
  fs::copy_file(TAPER_GOLDEN_DIR "/models/llama_a/model-00001-of-00002.safetensors", weights);
  check_shown(weights,
              {"weights (safetensors)", " tensors, ", "model.embed_tokens.weight: ", "(320, 64)"});
  fs::resize_file(weights, fs::file_size(weights) - 1);
  check_refused(weights, {"truncated"});
}

TEST_CASE("JSON is shown by its keys, and broken JSON is refused by its line") {
  const Scratch scratch;
  check_shown(TAPER_GOLDEN_DIR "/models/llama_a/config.json",
              {"JSON: {", "model_type: \"llama\"", "vocab_size: 320"});
  spill(scratch / "list.json", "[1, 2]");
  CHECK(inspect_file(scratch / "list.json") == "JSON: [2 items]\n");
  spill(scratch / "one.json", "{\"list\": [1]}");
  CHECK(inspect_file(scratch / "one.json") == "JSON: {1 key}\n  list: [1 item]\n");
  spill(scratch / "bad.json", "{\n\"a\": ]}");
  check_refused(scratch / "bad.json", {"bad.json is not valid JSON", "line 2"});
}

TEST_CASE("lines of JSON are counted, and a metrics log is known by its steps") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", "{\"prompt\": \"x\", \"b\": 1}\n\n{}\n");
  CHECK(inspect_file(scratch / "in.jsonl") == "JSON lines: 2 lines, the first with b, prompt\n");
  spill(scratch / "a.jsonl", "{\"step\": 3, \"a\": 1}\n{\"step\": 4}\n");
  CHECK(inspect_file(scratch / "a.jsonl") == "metrics log: 2 lines, iterations 3 to 4\n");
  spill(scratch / "bad.jsonl", "{}\n{\n");
  check_refused(scratch / "bad.jsonl", {"bad.jsonl:2"});
}

TEST_CASE("lines of evaluations behind an iteration are counted apart") {
  const Scratch scratch;
  const fs::path log = scratch / "metrics.jsonl";
  spill(log, "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 2, \"val/score/final\": 0.5}\n");
  CHECK(inspect_metrics(log) ==
        "3 lines, iterations 1 to 2 (1 line of evaluations after an iteration)\n");
  spill(log, "");
  CHECK(inspect_metrics(log) == "0 lines\n");
  spill(log, "{\"step\": 1}\nno line\n");
  CHECK_THAT(message_of([&] { inspect_metrics(log); }), ContainsSubstring("metrics.jsonl:2 "));
}

TEST_CASE("HDF5 is known by its content, and a profile by its format") {
  const Scratch scratch;
  const fs::path file = scratch / "without_ending";
  write_profile(file, synthetic_profile(small_model_shared(), {1, 2}));
  check_shown(file, {"latency profile of 2 ranks, 2 per node; its checksum is right\n",
                     "  model: hidden 256, layers 4\n", "decode steps"});
  {
    Hdf5File other = Hdf5File::create(file);
    other.write_string("/words", "of others");
  }
  CHECK(inspect_file(file) == "  words (): \"of others\"\n");
  spill(scratch / "lost.h5", "no signature");
  CHECK_THAT(message_of([&] { inspect_file(scratch / "lost.h5"); }),
             ContainsSubstring("lost.h5 is damaged or not an HDF5 file"));
}

TEST_CASE("files of other kinds are refused with what they are") {
  const Scratch scratch;
  spill(scratch / "run.yaml", "Run:\n  Seed: 1\n");
  check_refused(scratch / "run.yaml", {"is a YAML file", "HDF5 files, weights", "--check"});
  spill(scratch / "notes.txt", "hello");
  check_refused(scratch / "notes.txt", {"does not know", "HDF5 files, weights"});
}
