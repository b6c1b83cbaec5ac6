// SPDX-License-Identifier: Apache-2.0
//
// The messages that users see for wrong run files.
#include <catch2/catch_test_macros.hpp>

#include "RolloutOptions.hpp"
#include "param/Schema.hpp"
#include "support/Messages.hpp"

namespace taper::param {
namespace {

using test::message_of;

struct Fixture {
  test::RolloutOptions options;
  Schema schema;

  Fixture() { describe(schema, options); }
};

std::string problem(const std::string& text) {
  Fixture f;
  return message_of([&] { f.schema.read(ParamFile::parse(text, "run.yaml")); });
}

std::string rollout_problem(const std::string& entry) {
  return problem("Rollout:\n  " + entry + "\n");
}

const std::string kKnown =
    "(section Rollout knows Temperature, Top P, Samples, Seed, Top K, Greedy, Mode, Name, Degrees, "
    "Rates, Stop, Cache)";

TEST_CASE("unknown names are listed with what is known and what is near") {
  CHECK(rollout_problem("Temprature: 1") ==
        "run.yaml line 2: Rollout/Temprature is unknown " + kKnown + "; did you mean Temperature?");
  CHECK(rollout_problem("temperature: 1") == "run.yaml line 2: Rollout/temperature is unknown " +
                                                 kKnown + "; did you mean Temperature?");
  CHECK(rollout_problem("Pages: 1") == "run.yaml line 2: Rollout/Pages is unknown " + kKnown +
                                           "; did you mean Rollout/Cache/Pages?");
  CHECK(rollout_problem("Quux zzzzzzz: 1") ==
        "run.yaml line 2: Rollout/Quux zzzzzzz is unknown " + kKnown);
  CHECK(problem("Rolout:\n  Temperature: 1\n") ==
        "run.yaml line 1: Rolout is unknown (the top level knows Rollout); did you mean Rollout?");
  CHECK(problem("Temperature: 1\n") ==
        "run.yaml line 1: Temperature is unknown (the top level knows Rollout); did you mean "
        "Rollout/Temperature?");
}

TEST_CASE("unknown names in assignments are blamed on the assignment") {
  Fixture f;
  ParamFile file;
  file.set("Rollout/Temprature=0.8");
  CHECK(message_of([&] { f.schema.read(file); }) ==
        "--set Rollout/Temprature=0.8: Rollout/Temprature is unknown " + kKnown +
            "; did you mean Temperature?");
  ParamFile nested;
  nested.set("Nowhere/Deep/x=1");
  CHECK(message_of([&] {
          f.schema.read(nested);
        }).starts_with("--set Nowhere/Deep/x=1: Nowhere is unknown (the top level knows Rollout)"));
}

TEST_CASE("settings that do not fit each other are blamed on where they were set") {
  Fixture f;
  const auto problem_of = [&](const char* text, const std::vector<std::string>& assignments) {
    ParamFile file = ParamFile::parse(text, "run.yaml");
    for (const auto& assignment : assignments) file.set(assignment);
    return message_of([&] { f.schema.read(file); });
  };
  std::string found = "Rollout/Top P is low beside Rollout/Top K";
  f.schema.section("Rollout").check([&] { return std::vector{found}; });
  CHECK(problem_of("", {}) == "run.yaml: " + found);  // both have their defaults
  CHECK(problem_of("Rollout:\n  Top K: 3\n", {}) == "run.yaml line 2: " + found);
  CHECK(problem_of("Rollout:\n  Top K: 3\n", {"Rollout/Top P=0.5"}) ==
        "--set Rollout/Top P=0.5, run.yaml line 2: " + found);
  CHECK(problem_of("Rollout:\n  Top K: 3\n", {"Rollout/Top K=9"}) ==
        "--set Rollout/Top K=9: " + found);
  found = "too much of everything";
  CHECK(problem_of("Rollout:\n  Top K: 3\n", {}) == "run.yaml: Rollout: " + found);
}

TEST_CASE("wrong kinds say what is expected and what was found") {
  CHECK(rollout_problem("Temperature: hot") ==
        "run.yaml line 2: Rollout/Temperature is \"hot\" (a number is expected, not text)");
  CHECK(rollout_problem("Temperature: true") ==
        "run.yaml line 2: Rollout/Temperature is true (a number is expected, not a flag)");
  CHECK(rollout_problem("Temperature: none") ==
        "run.yaml line 2: Rollout/Temperature is \"none\" (a number is expected, not text)");
  CHECK(rollout_problem("Temperature:") ==
        "run.yaml line 2: Rollout/Temperature is empty (a number is expected, not nothing)");
  CHECK(rollout_problem("Temperature: {x: 1}") ==
        "run.yaml line 2: Rollout/Temperature is a section (a number is expected, not a section)");
  CHECK(rollout_problem("Temperature: [1, 2]") ==
        "run.yaml line 2: Rollout/Temperature is [1, 2] (a number is expected, not a list)");
  CHECK(rollout_problem("Top K: much") ==
        "run.yaml line 2: Rollout/Top K is \"much\" (an integer is expected, not text)");
  CHECK(rollout_problem("Samples: 1.5") ==
        "run.yaml line 2: Rollout/Samples is 1.5 (an integer is expected, not a number)");
  CHECK(rollout_problem("Greedy: 1") ==
        "run.yaml line 2: Rollout/Greedy is 1 (true or false is expected, not an integer)");
  CHECK(rollout_problem("Degrees: [1, two]") ==
        "run.yaml line 2: Rollout/Degrees is [\"1\", \"two\"] (a list of integers is expected, not "
        "a list)");
  CHECK(problem("Rollout: 3\n")
            .starts_with("run.yaml line 1: Rollout is 3 (a section with Temperature, Top P, "));
}

TEST_CASE("text parameters want quotes around numbers") {
  test::ModelOptions options;
  Schema schema;
  describe(schema, options);
  const auto read = [&](const std::string& text) {
    return message_of([&] { schema.read(ParamFile::parse("Model: {" + text + "}", "run.yaml")); });
  };
  CHECK(read("Directory: 7") ==
        "run.yaml line 1: Model/Directory is 7 (text is expected, not an "
        "integer); to mean text, put it in quotes");
  CHECK(read("Directory: ''") == "run.yaml line 1: Model/Directory is empty (some text is needed)");
  CHECK(read("Directory: '7'") == "");
  CHECK(options.directory == "7");
}

TEST_CASE("values out of range say the range") {
  CHECK(rollout_problem("Temperature: -1") ==
        "run.yaml line 2: Rollout/Temperature is -1 (must be at least 0)");
  CHECK(rollout_problem("Temperature: .nan") ==
        "run.yaml line 2: Rollout/Temperature is \".nan\" (a number is expected, not text)");
  CHECK(rollout_problem("Top P: 0") ==
        "run.yaml line 2: Rollout/Top P is 0 (must be above 0 and at most 1)");
  CHECK(rollout_problem("Samples: 2000") ==
        "run.yaml line 2: Rollout/Samples is 2000 (must be between 1 and 1024)");
  CHECK(rollout_problem("Seed: -1") ==
        "run.yaml line 2: Rollout/Seed is -1 (must be between 0 and 9223372036854775807)");
  CHECK(rollout_problem("Top K: 3e9") ==
        "run.yaml line 2: Rollout/Top K is 3.0e+09 (must be "
        "between -2147483648 and 2147483647)");
  CHECK(rollout_problem("Degrees: [1, 0, 4]") ==
        "run.yaml line 2: Rollout/Degrees[1] is 0 (must be at least 1)");
  CHECK(rollout_problem("Degrees: []") ==
        "run.yaml line 2: Rollout/Degrees is empty (at least one item is needed)");
  CHECK(rollout_problem("Rates: [0.5, 1.0]") ==
        "run.yaml line 2: Rollout/Rates[1] is 1.0 (must be below 1)");
}

TEST_CASE("unknown choices list the known ones") {
  CHECK(rollout_problem("Mode: adaptve") ==
        "run.yaml line 2: Rollout/Mode is \"adaptve\" (must be one of static, advise, adaptive); "
        "did you mean adaptive?");
  CHECK(rollout_problem("Mode: 12345678901234") ==
        "run.yaml line 2: Rollout/Mode is 12345678901234 (must be one of static, advise, "
        "adaptive)");
}

TEST_CASE("all problems of a file are reported at once") {
  Fixture f;
  ParamFile file = ParamFile::parse(
      "Rollout:\n  Temprature: 1\n  Samples: many\n  Cache:\n    Pages: 0\nOther: 1\n", "run.yaml");
  file.set("Rollout/Mode=fast");
  const std::string message = message_of([&] { f.schema.read(file); });
  CHECK(message ==
        "run.yaml has 5 problems:\n"
        "  run.yaml line 2: Rollout/Temprature is unknown " +
            kKnown +
            "; did you mean Temperature?\n"
            "  run.yaml line 3: Rollout/Samples is \"many\" (an integer is expected, not text)\n"
            "  run.yaml line 5: Rollout/Cache/Pages is 0 (must be at least 1)\n"
            "  --set Rollout/Mode=fast: Rollout/Mode is \"fast\" (must be one of static, advise, "
            "adaptive)\n"
            "  run.yaml line 6: Other is unknown (the top level knows Rollout)");
  CHECK(f.options.samples == 8);
  CHECK(f.options.pages == 64);
}

TEST_CASE("problems of the options themselves are reported with their section") {
  CHECK(rollout_problem("Greedy: on") ==
        "run.yaml: Rollout: Greedy is on at Temperature > 0 (greedy needs 0)");
  CHECK(rollout_problem("Greedy: on\n  Temperature: 0") == "");
  // Not asked while the values themselves are wrong.
  CHECK(rollout_problem("Greedy: on\n  Samples: 0") ==
        "run.yaml line 3: Rollout/Samples is 0 (must be between 1 and 1024)");
}

TEST_CASE("problems can be had without an exception") {
  Fixture f;
  const auto problems = f.schema.read_and_list_problems(
      ParamFile::parse("Rollout: {Samples: 0, Temperature: -1}", "run.yaml"));
  CHECK(problems.size() == 2);
  CHECK(f.schema.read_and_list_problems(ParamFile()).empty());
}

TEST_CASE("a parameter that is not there is named with the nearest") {
  const Fixture f;
  const auto problem_of = [&](const std::string& path) {
    return message_of([&] { f.schema.current_value(path); });
  };
  CHECK(problem_of("Rollout/Nme") ==
        "there is no parameter Rollout/Nme; did you mean 'Rollout/Name'?");
  CHECK(problem_of("Rollout").starts_with("there is no parameter Rollout"));
}

TEST_CASE("mistakes of a description are programming errors") {
  int a = 1;
  std::string text;
  bool flag = false;
  Schema schema;
  auto section = schema.section("S");
  section.integer("A", a, "");
  const auto mistake = [](auto call) {
    try {
      call();
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::kFailure);
      const std::string text = error.what(), end = " (a bug in Taper; please report it)";
      REQUIRE(text.ends_with(end));
      return text.substr(0, text.size() - end.size());
    }
    return std::string();
  };
  CHECK(mistake([&] { section.integer("A", a, ""); }) == "parameter S/A is described twice");
  CHECK(mistake([&] { section.section("A"); }) == "parameter S/A is described as a section too");
  CHECK(mistake([&] { section.text("B/C", text, ""); }) ==
        "parameter S/B/C has a name that cannot be part of a path");
  CHECK(mistake([&] { section.text("B", text, "").at_least(1); }) ==
        "parameter S/B got limits, but is no number");
  CHECK(mistake([&] { section.flag("C", flag, "").not_empty(); }) ==
        "parameter S/C must not be empty, but is neither text nor a list");
}

}  // namespace
}  // namespace taper::param
