// SPDX-License-Identifier: Apache-2.0
#include "param/Schema.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <map>
#include <sstream>

#include "RolloutOptions.hpp"

namespace taper::param {
namespace {

using test::Mode;
using test::RolloutOptions;

struct Fixture {
  RolloutOptions options;
  Schema schema;

  Fixture() { describe(schema, options); }
  void read(const std::string& text) { schema.read(ParamFile::parse(text, "run.yaml")); }
  void read_rollout(const std::string& entry) { read("Rollout:\n  " + entry + "\n"); }
};

TEST_CASE("a file fills the described members and no others") {
  Fixture f;
  f.read(R"(
Rollout:
  Temperature: 0.5
  Top P: 0.9
  Samples: 4
  Seed: 12345678901
  Top K: 0
  Mode: adaptive
  Name: 'none'
  Degrees: [1, 2, 4]
  Rates: [0.5, 0]
  Stop: []
  Cache:
    Pages: 128
)");
  CHECK(f.options.temperature == 0.5);
  CHECK(f.options.top_p == 0.9);
  CHECK(f.options.samples == 4);
  CHECK(f.options.seed == 12345678901u);
  CHECK(f.options.top_k == 0);
  CHECK(f.options.mode == Mode::kAdaptive);
  CHECK(f.options.name == "none");
  CHECK(f.options.degrees == std::vector{1, 2, 4});
  CHECK(f.options.rates == std::vector{0.5f, 0.0f});
  CHECK(f.options.stop.empty());
  CHECK(f.options.pages == 128);
  CHECK_FALSE(f.options.greedy);
}

TEST_CASE("sections may have names of the user's choice") {
  std::map<std::string, double> rates;
  Schema schema;
  schema.named_sections("Models", "Rates by name", [&](Section s, const std::string& name) {
    s.number("Rate", rates[name], "The rate").at_least(0);
  });
  ParamFile file = ParamFile::parse("Models:\n  small: {Rate: 1.5}\n  large:\n", "run.yaml");
  file.set("Models/third one/Rate=2");
  schema.read(file);
  CHECK(rates == std::map<std::string, double>{{"small", 1.5}, {"large", 0.0}, {"third one", 2.0}});
  const auto problems = [&](const std::string& text) {
    return schema.read_and_list_problems(ParamFile::parse(text, "run.yaml"));
  };
  CHECK(problems(schema.current_yaml()).empty());
  CHECK(problems("Models: {a: {Rate: -1}}").size() == 1);
  CHECK(problems("Models: {a: {Speed: 1}}").size() == 1);
  CHECK(problems("Models: {b: 3}").size() == 1);
  CHECK(problems("Models: 3").size() == 1);
  Schema fresh;
  fresh.named_sections("Models", "", [&](Section s, const std::string& name) {
    s.number("Rate", rates[name], "The rate");
  });
  fresh.read(ParamFile::parse(fresh.defaults_yaml(), "run.yaml"));
}

TEST_CASE("an empty file and empty sections keep the defaults") {
  Fixture f;
  f.read("Rollout:\n  Cache:\n");
  f.schema.read(ParamFile());
  CHECK(f.options.temperature == 1);
  CHECK(f.options.top_k == 40);
  CHECK(f.schema.current_yaml() == f.schema.defaults_yaml());
}

TEST_CASE("number parameters accept any spelling of a number") {
  Fixture f;
  const std::pair<const char*, double> spellings[] = {
      {"1", 1},        {"1.0", 1},    {"1.", 1},
      {"1e-6", 1e-6},  {".5", .5},    {"+2", 2},
      {"'0.25'", .25}, {"1e3", 1000}, {".inf", std::numeric_limits<double>::infinity()}};
  for (const auto& [text, number] : spellings) {
    f.options.temperature = -1;
    f.read_rollout(std::string("Temperature: ") + text);
    CHECK(f.options.temperature == number);
  }
}

TEST_CASE("integer parameters accept whole numbers") {
  Fixture f;
  for (const char* text : {"16", "16.0", "1.6e1", "+16"}) {
    f.options.samples = 1;
    f.read_rollout(std::string("Samples: ") + text);
    CHECK(f.options.samples == 16);
  }
  f.read_rollout("Samples: 1e3");
  CHECK(f.options.samples == 1000);
}

TEST_CASE("flags accept six words") {
  Fixture f;
  f.options.temperature = 0;
  for (const char* text : {"true", "on", "yes", "True", "ON"}) {
    f.options.greedy = false;
    f.read_rollout(std::string("Greedy: ") + text);
    CHECK(f.options.greedy);
  }
  for (const char* text : {"false", "off", "no"}) {
    f.options.greedy = true;
    f.read_rollout(std::string("Greedy: ") + text);
    CHECK_FALSE(f.options.greedy);
  }
}

TEST_CASE("lists accept a single item, both spellings and none") {
  Fixture f;
  f.read_rollout("Degrees: 4");
  CHECK(f.options.degrees == std::vector{4});
  f.read_rollout("Degrees:\n    - 1\n    - 2.0");
  CHECK(f.options.degrees == std::vector{1, 2});
  f.read_rollout("Rates: none");
  CHECK(f.options.rates.empty());
  f.read_rollout("Stop: 'a, b'");
  CHECK(f.options.stop == std::vector<std::string>{"a, b"});
}

TEST_CASE("choices ignore case") {
  Fixture f;
  f.read_rollout("Mode: Advise");
  CHECK(f.options.mode == Mode::kAdvise);
  CHECK(f.schema.current_yaml().find("  Mode: advise\n") != std::string::npos);
}

TEST_CASE("assignments win over the file") {
  Fixture f;
  ParamFile file = ParamFile::parse("Rollout: {Temperature: 1, Samples: 2}", "run.yaml");
  file.set("Rollout/Temperature=0.8");
  file.set("Rollout/Cache/Pages=9");
  f.schema.read(file);
  CHECK(f.options.temperature == 0.8);
  CHECK(f.options.samples == 2);
  CHECK(f.options.pages == 9);
}

TEST_CASE("the dump of the defaults is a documented run file") {
  Fixture f;
  CHECK(f.schema.defaults_yaml() == R"(# How responses are generated
Rollout:
  # Softmax temperature; 0 is greedy [a number, at least 0]
  Temperature: 1.0
  # Mass kept of the distribution [a number, above 0 and at most 1]
  Top P: 1.0
  # Responses per prompt [an integer, between 1 and 1024]
  Samples: 8
  # Seed of all random numbers [an integer]
  Seed: 7
  # Tokens kept of the distribution; 0 is all [an integer, at least 0]
  Top K: 40
  # Takes the likeliest token [true or false]
  Greedy: false
  # Who chooses the layout [one of static, advise, adaptive]
  Mode: static
  # What reports call the run [text]
  Name: first
  # Degrees of tensor parallelism [a list of integers, at least 1]
  Degrees: [1, 2]
  # Rates per stage [a list of numbers, below 1]
  Rates: []
  # Texts that end a response [a list of texts]
  Stop: ['</s>']
  # Memory of keys and values
  Cache:
    # Pages per rank [an integer, at least 1]
    Pages: 64
)");
}

TEST_CASE("a dump reads back as the values it was made of") {
  Fixture f;
  f.options.temperature = 1.0 / 3;
  f.options.top_p = 1e-6;
  f.options.top_k = 3;
  f.options.name = "none";
  f.options.seed = std::numeric_limits<std::int64_t>::max();
  f.options.mode = Mode::kAdaptive;
  f.options.rates = {0.1f};
  f.options.stop = {"", "a, b", "[x]", "it's", "two\nlines", "日本", "# no", "1", "none", "true"};
  const std::string dump = f.schema.current_yaml();
  CHECK(dump != f.schema.defaults_yaml());
  CHECK(dump.find("Rates: [0.1]\n") != std::string::npos);
  Fixture again;
  again.read(dump);
  CHECK(again.options.temperature == f.options.temperature);
  CHECK(again.options.top_p == f.options.top_p);
  CHECK(again.options.top_k == f.options.top_k);
  CHECK(again.options.name == f.options.name);
  CHECK(again.options.seed == f.options.seed);
  CHECK(again.options.mode == f.options.mode);
  CHECK(again.options.rates == f.options.rates);
  CHECK(again.options.stop == f.options.stop);
  CHECK(again.schema.current_yaml() == dump);
}

TEST_CASE("defaults stay what they were when a file was read") {
  Fixture f;
  const std::string before = f.schema.defaults_yaml();
  f.read_rollout("Temperature: 0.5");
  CHECK(f.schema.defaults_yaml() == before);
  CHECK(f.schema.current_yaml().find("\n  Temperature: 0.5\n") != std::string::npos);
}

TEST_CASE("two modules can share a section") {
  int a = 1, b = 2;
  Schema schema;
  schema.section("Run", "All of it").integer("A", a, "first");
  schema.section("Run").integer("B", b, "second");
  schema.read(ParamFile::parse("Run: {A: 3, B: 4}", "run.yaml"));
  CHECK(a == 3);
  CHECK(b == 4);
  CHECK(schema.defaults_yaml().starts_with("# All of it\nRun:\n"));
}

TEST_CASE("parameters may stand at the top level and long docs are wrapped") {
  int a = 1;
  Schema schema;
  std::string doc;
  for (int i = 0; i < 40; ++i) doc += "word ";
  schema.integer("A", a, doc);
  schema.read(ParamFile::parse("A: 5", "run.yaml"));
  CHECK(a == 5);
  std::istringstream lines(schema.current_yaml());
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    CHECK(line.size() <= 100);
    ++count;
  }
  CHECK(count == 4);
}

}  // namespace
}  // namespace taper::param
