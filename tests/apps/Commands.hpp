// SPDX-License-Identifier: Apache-2.0
//
// The executable as scripts see it: runs of `taper COMMAND`, and a folder for them.
#pragma once

#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "io/Json.hpp"
#include "support/Scratch.hpp"

namespace taper::commands {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using test::slurp;
using test::spill;

struct Outcome {
  int code = -1;
  std::string text;  // stdout and stderr
};

inline Outcome run(const std::string& arguments, const std::string& environment = "") {
  FILE* pipe = ::popen((environment + " " TAPER_BINARY " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;)
    outcome.text.append(part, n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return outcome;
}

inline std::vector<Json> lines_of(const fs::path& path) {
  std::vector<Json> list;
  JsonLines lines(path);
  for (Json value; lines.next(value);) list.push_back(value);
  return list;
}

// A folder with a tiny model that has a tokenizer of bytes, removed at the end of the test case.
class Scratch {
 public:
  Scratch() {
    fs::copy(TAPER_GOLDEN_DIR "/models/llama_a", folder_ / "model");
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(fs::path(TAPER_DATA_DIR "/model") / file, folder_ / "model" / file);
  }
  const fs::path& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

  std::string generate(const std::string& more) const {
    return "generate --model " + *this / "model" + " --prompts " + *this / "in.jsonl" +
           " --output " + *this / "out.jsonl" + " --max-new-tokens 6 " + more;
  }
  std::string score(const std::string& more) const {
    return "score --model " + *this / "model" + " --input " + *this / "in.jsonl" + " --output " +
           *this / "out.jsonl " + more;
  }
  // The command must fail with code 2, name all the words and leave no output.
  void refuses(const std::string& arguments, const std::vector<std::string>& words) const {
    const Outcome outcome = run(arguments);
    INFO(arguments << "\n" << outcome.text);
    CHECK(outcome.code == 2);
    for (const auto& word : words) CHECK_THAT(outcome.text, ContainsSubstring(word));
    CHECK(!fs::exists(*this / "out.jsonl"));
    CHECK(!fs::exists(*this / "out.jsonl.part"));
  }

 private:
  test::Scratch folder_;
};

// A folder in which `taper train` has made one iteration.
struct TrainedRun {
  TrainedRun() {
    std::string words = "train";
    for (const std::string& value :
         {"Model/Directory=" + scratch / "model", "Output/Directory=" + directory,
          std::string("Rollout/Prompts=2"), std::string("Rollout/Samples Per Prompt=2"),
          std::string("Rollout/Max New Tokens=8"), std::string("Training/Iterations=1")})
      words += " --set \"" + value + "\"";
    const Outcome training = run(words);
    INFO(training.text);
    REQUIRE(training.code == 0);
  }

  Scratch scratch;
  const std::string directory = scratch / "run";
  const fs::path checkpoint = scratch / "run/checkpoints/iter_000001";
  const std::string rollouts = scratch / "run/rollouts/iter_000001.h5";
};

}  // namespace taper::commands
