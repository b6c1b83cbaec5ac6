// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "run/JobOptions_params.hpp"
#include "support/Problems.hpp"

using namespace taper;
using taper::test::check_problem;

namespace {

struct Command {
  Command() { describe_run(schema, options); }
  // Of a file with these lines in its section.
  std::vector<std::string> problems(const std::vector<std::string>& lines) {
    std::string text = "Run:\n";
    for (const auto& line : lines) text += "  " + line + "\n";
    return schema.read_and_list_problems(param::ParamFile::parse(text, "run.yaml"));
  }

  JobOptions options;
  param::Schema schema;
};

}  // namespace

TEST_CASE("the section Run has what all jobs have") {
  Command c;
  CHECK(c.problems({"Seed: 12345678901", "Hang Seconds: 2.5", "Deadline Margin: 0"}).empty());
  CHECK(c.options.seed == 12345678901u);
  CHECK(c.options.hang_seconds == 2.5);
  CHECK(c.options.deadline_margin == 0.0);
}

TEST_CASE("ranks that never wait, negative seeds and margins are refused") {
  Command c;
  check_problem(c.problems({"Seed: -1"}), {"Run/Seed"});
  check_problem(c.problems({"Hang Seconds: 0"}), {"Run/Hang Seconds"});
  check_problem(c.problems({"Deadline Margin: -1"}), {"Run/Deadline Margin"});
  CHECK(c.options.hang_seconds == 600.0);
}
