// SPDX-License-Identifier: Apache-2.0
#include "param/CommandLine.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "support/Messages.hpp"

namespace taper::param {
namespace {

using test::message_of;
using Next = CommandLine::Next;

enum class Mode { kStatic, kAdaptive };

struct Fixture {
  std::string run_file;
  std::string output = "out.jsonl";
  std::vector<std::string> assignments;
  double temperature = 1;
  int seed = 7;
  std::vector<int> degrees = {1, 2};
  Mode mode = Mode::kStatic;
  bool check = false;
  CommandLine line{"taper train", "Trains a model as a run file says."};

  Fixture() {
    line.positional("RUN", run_file, "the run file").required();
    line.repeated("set", assignments, "NAME=VALUE", "overrides a value of the run file");
    line.text("output", output, "FILE", "where results go");
    line.number("temperature", temperature, "T", "softmax temperature").at_least(0);
    line.integer("seed", seed, "S", "seed of all random numbers");
    line.list("degrees", degrees, "N,N", "degrees of tensor parallelism").at_least(1);
    line.choice("mode", mode, "who chooses the layout",
                {{"static", Mode::kStatic}, {"adaptive", Mode::kAdaptive}});
    line.flag("check", check, "validates the input and exits");
  }

  std::string problem(const std::vector<std::string>& arguments) {
    std::string message = message_of([&] { line.parse(arguments); });
    const std::string ending = "\n  taper train --help lists all options";
    if (!message.starts_with("taper train: ") || !message.ends_with(ending)) return "? " + message;
    return message.substr(13, message.size() - 13 - ending.size());
  }
};

TEST_CASE("options are taken in both spellings and any order") {
  Fixture f;
  CHECK(f.line.parse({"--temperature", "0.5", "run.yaml", "--seed=3", "--set", "A/x=1",
                      "--degrees=2,4", "--set=B=[1,2]", "--mode", "adaptive", "--check"}) ==
        Next::kRun);
  CHECK(f.run_file == "run.yaml");
  CHECK(f.temperature == 0.5);
  CHECK(f.seed == 3);
  CHECK(f.assignments == std::vector<std::string>{"A/x=1", "B=[1,2]"});
  CHECK(f.degrees == std::vector{2, 4});
  CHECK(f.mode == Mode::kAdaptive);
  CHECK(f.check);
  CHECK(f.output == "out.jsonl");
  CHECK(f.line.given("seed"));
  CHECK_FALSE(f.line.given("output"));
}

TEST_CASE("values are taken as they are") {
  Fixture f;
  f.line.parse({"--output", "123", "--seed", "-1", "--check=off", "--degrees", "", "--", "--run"});
  CHECK(f.output == "123");
  CHECK(f.seed == -1);
  CHECK_FALSE(f.check);
  CHECK(f.degrees.empty());
  CHECK(f.run_file == "--run");
  f.line.parse({"run.yaml", "--output="});
  CHECK(f.output.empty());
}

TEST_CASE("help shows how a flag that is on is switched off, and no limit that is none") {
  bool mixed = true;
  double deadline = std::numeric_limits<double>::infinity();
  CommandLine line("taper test", "For tests.");
  line.flag("mixed", mixed, "groups of different degrees");
  line.number("deadline", deadline, "T", "end of the job");
  CHECK(line.help().find("--mixed=off") != std::string::npos);
  CHECK(line.help().find("groups of different degrees (default on)") != std::string::npos);
  CHECK(line.help().find("inf") == std::string::npos);
  line.parse({"--mixed=off"});
  CHECK(!mixed);
}

TEST_CASE("the name of the program is skipped") {
  Fixture f;
  const char* const arguments[] = {"taper", "run.yaml", "--seed", "4"};
  CHECK(!f.line.parse_or_print_help(4, arguments));
  CHECK(f.run_file == "run.yaml");
  CHECK(f.seed == 4);
  CHECK(message_of([&] { f.line.parse_or_print_help(0, arguments); }).find("RUN is missing") !=
        std::string::npos);
}

TEST_CASE("wrong usage is refused") {
  Fixture f;
  CHECK(f.problem({"r", "--temprature", "1"}) ==
        "option --temprature is unknown; did you mean --temperature?");
  CHECK(f.problem({"r", "--qqqqqqqqqqqq"}) == "option --qqqqqqqqqqqq is unknown");
  CHECK(f.problem({"r", "-x"}) == "option -x is unknown; options begin with two dashes");
  CHECK(f.problem({}) == "argument RUN is missing (the run file)");
  CHECK(f.problem({""}) == "argument RUN is empty (some text is needed)");
  CHECK(f.problem({"r", "s"}) == "unexpected argument \"s\"");
  CHECK(f.problem({"r", "--seed"}) == "option --seed S needs a value");
  CHECK(f.problem({"r", "--seed", "--check"}) == "option --seed S needs a value");
  CHECK(f.problem({"r", "--seed", "1", "--seed", "2"}) == "option --seed is given twice");
  CHECK(f.problem({"r", "--seed=x"}) ==
        "option --seed is \"x\" (an integer is expected, not text)");
  CHECK(f.problem({"r", "--temperature=-1"}) ==
        "option --temperature is \"-1\" (must be at least 0)");
  CHECK(f.problem({"r", "--degrees=1,0"}) == "option --degrees[1] is \"0\" (must be at least 1)");
  CHECK(f.problem({"r", "--degrees=1,,2"}) ==
        "option --degrees is [\"1\", \"\", \"2\"] (a list of integers is expected, not a list)");
  CHECK(f.problem({"r", "--mode=statc"}) ==
        "option --mode is \"statc\" (must be one of static, "
        "adaptive); did you mean static?");
  CHECK(f.problem({"r", "--check=2"}) ==
        "option --check is \"2\" (true or false is expected, not text)");
}

TEST_CASE("required options and programs without arguments") {
  std::string model;
  CommandLine line("taper score", "Scores tokens.");
  line.text("model", model, "DIR", "the model").required();
  CHECK(message_of([&] { line.parse(std::vector<std::string>{}); }) ==
        "taper score: option --model DIR is missing (the model)\n  taper score --help lists all "
        "options");
  CHECK(message_of([&] {
          line.parse({"x"});
        }).find("unexpected argument \"x\"; all of this command's arguments are options") !=
        std::string::npos);
  CHECK(line.help().starts_with("usage: taper score --model DIR [options]\n"));
}

TEST_CASE("help is generated and stops everything else") {
  Fixture f;
  CHECK(f.line.parse({"--nonsense", "--help"}) == Next::kShowHelp);
  CHECK(f.line.parse({"-h"}) == Next::kShowHelp);
  CHECK(f.line.parse({"--", "-h"}) == Next::kRun);
  CHECK(f.line.help() == R"(usage: taper train RUN [options]

Trains a model as a run file says.

arguments:
  RUN                         the run file (required)

options:
  --set NAME=VALUE            overrides a value of the run file (may be repeated)
  --output FILE               where results go (default out.jsonl)
  --temperature T             softmax temperature (a number, at least 0; default 1.0)
  --seed S                    seed of all random numbers (default 7)
  --degrees N,N               degrees of tensor parallelism (a list of integers, at least 1; default
                              1,2)
  --mode WORD                 who chooses the layout (one of static, adaptive; default static)
  --check                     validates the input and exits
  --help                      shows this text
)");
}

TEST_CASE("declaring an option twice is a programming error") {
  Fixture f;
  int other = 0;
  CHECK_THROWS_AS(f.line.integer("seed", other, "S", ""), Error);
  CHECK_THROWS_AS(f.line.integer("help", other, "S", ""), Error);
  CHECK_THROWS_AS(f.line.given("unheard"), Error);
  CHECK_THROWS_AS(f.line.text("name", f.output, "T", "").at_least(1), Error);
}

}  // namespace
}  // namespace taper::param
