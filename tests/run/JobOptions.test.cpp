// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "run/JobOptions_params.hpp"
#include "support/Problems.hpp"

using namespace taper;
using taper::test::check_problem;

namespace {

// A command whose jobs have no deadline, with a setting of its own.
struct Command {
  Command() {
    auto run = describe_run(schema, seed, hang_seconds);
    run.flag("Verbose", verbose, "");
  }
  // Of a file with these lines in its section.
  std::vector<std::string> problems(const std::vector<std::string>& lines) {
    std::string text = "Run:\n";
    for (const auto& line : lines) text += "  " + line + "\n";
    return schema.read_and_list_problems(param::ParamFile::parse(text, "run.yaml"));
  }

  std::uint64_t seed = 1;
  double hang_seconds = 600.0;
  bool verbose = false;
  param::Schema schema;
};

struct CommandWithDeadline : Command {
  CommandWithDeadline() {
    auto run = schema.section("Run");
    describe_deadline(run, margin);
  }

  double margin = 120.0;
};

}  // namespace

TEST_CASE("the section Run has what all jobs have, and what a command adds") {
  CommandWithDeadline c;
  CHECK(
      c.problems({"Seed: 12345678901", "Hang Seconds: 2.5", "Verbose: true", "Deadline Margin: 0"})
          .empty());
  CHECK(c.seed == 12345678901u);
  CHECK(c.hang_seconds == 2.5);
  CHECK(c.verbose);
  CHECK(c.margin == 0.0);
}

TEST_CASE("a margin is known where a command has a deadline only") {
  check_problem(Command().problems({"Deadline Margin: 60"}), {"Run/Deadline Margin"});
  CHECK(CommandWithDeadline().problems({"Deadline Margin: 60"}).empty());
}

TEST_CASE("ranks that never wait, negative seeds and margins are refused") {
  CommandWithDeadline c;
  check_problem(c.problems({"Seed: -1"}), {"Run/Seed"});
  check_problem(c.problems({"Hang Seconds: 0"}), {"Run/Hang Seconds"});
  check_problem(c.problems({"Deadline Margin: -1"}), {"Run/Deadline Margin"});
  CHECK(c.hang_seconds == 600.0);
}
