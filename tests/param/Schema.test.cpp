// SPDX-License-Identifier: Apache-2.0
#include "param/Schema.hpp"

#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <limits>
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

TEST_CASE("a script gets the value that a parameter has") {
  Fixture f;
  f.read("Rollout: {Name: 'a path: with blanks', Degrees: [1, 2], Cache: {Pages: 128}}");
  CHECK(f.schema.current_value("Rollout/Name") == "a path: with blanks");
  CHECK(f.schema.current_value("Rollout/Degrees") == "[1, 2]");
  CHECK(f.schema.current_value("Rollout/Cache/Pages") == "128");
  CHECK(f.schema.current_value("Rollout/Mode") == "static");  // a default
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

// Shapes that a file names, whose parameters depend on their kind.
struct Shapes {
  struct Shape {
    std::string name, kind;
    int radius = 1, edge = 2;
  };
  std::deque<Shape> list;
  Schema schema;

  Shapes() {
    schema.entries("Shapes", "What is drawn",
                   [this](Section entry, const std::string& name, const Section::Peek& peek) {
                     Shape& shape = list.emplace_back();
                     shape.name = name;
                     entry.text("Kind", shape.kind, "circle or square");
                     if (peek("Kind") == "circle")
                       entry.integer("Radius", shape.radius, "of a circle").at_least(1);
                     else
                       entry.integer("Edge", shape.edge, "of a square");
                   });
  }
};

TEST_CASE("a file may name the sections of a section") {
  Shapes s;
  s.schema.read(ParamFile::parse(
      "Shapes:\n  b: {Kind: circle, Radius: 3}\n  a:\n    Kind: square\n  c:\n", "run.yaml"));
  REQUIRE(s.list.size() == 3);
  CHECK(s.list[0].name == "b");  // in the order of the file
  CHECK(s.list[0].radius == 3);
  CHECK(s.list[1].name == "a");
  CHECK(s.list[2].kind.empty());
  Shapes again;
  again.schema.read(ParamFile::parse(s.schema.current_yaml(), "run.yaml"));
  CHECK(again.schema.current_yaml() == s.schema.current_yaml());
  CHECK(again.list[0].radius == 3);
  CHECK(Shapes().schema.defaults_yaml() == "# What is drawn\nShapes:\n");
}

TEST_CASE("an optional section is off unless the file names it, and dumps leave it out") {
  bool is_on = false;
  int edge = 2;
  const auto read = [&](const std::string& text) {
    is_on = false;
    edge = 2;
    Schema schema;
    Section frame = schema.section("Frame", "Around the picture");
    frame.optional(is_on);
    frame.integer("Edge", edge, "its width");
    CHECK(schema.defaults_yaml().empty());
    schema.read(ParamFile::parse(text, "run.yaml"));
    return schema.current_yaml();
  };
  CHECK(read("").empty());
  CHECK(!is_on);
  for (const char* text : {"Frame:", "Frame: {}", "Frame: {Edge: 2}"}) {
    const std::string dump = read(text);
    CHECK(is_on);
    CHECK(dump.find("  Edge: 2\n") != std::string::npos);
    CHECK(read(dump) == dump);
    CHECK(is_on);
  }
  Schema schema;
  schema.section("Frame").optional(is_on);
  const auto problems =
      schema.read_and_list_problems(ParamFile::parse("Fram: {Edge: 3}", "run.yaml"));
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().ends_with("did you mean Frame?"));
}

TEST_CASE("assignments make and change sections that a file names") {
  Shapes s;
  ParamFile file = ParamFile::parse("Shapes: {a: {Kind: circle}}", "run.yaml");
  file.set("Shapes/a/Radius=7");
  file.set("Shapes/b/Kind=square");
  s.schema.read(file);
  REQUIRE(s.list.size() == 2);
  CHECK(s.list[0].radius == 7);
  CHECK(s.list[1].name == "b");
}

TEST_CASE("mistakes in sections that a file names are told with their place") {
  const auto problem = [](const std::string& text) {
    Shapes s;
    const auto problems = s.schema.read_and_list_problems(ParamFile::parse(text, "run.yaml"));
    return problems.size() == 1 ? problems.front() : std::to_string(problems.size());
  };
  CHECK(problem("Shapes: {a: {Kind: circle, Edge: 3}}") ==
        "run.yaml line 1: Shapes/a/Edge is unknown (section Shapes/a knows Kind, Radius)");
  CHECK(
      problem("Shapes: {a: {Kind: circle, Radius: 0}}").starts_with("run.yaml line 1: Shapes/a/"));
  CHECK(problem("Shapes: {a: 3}") ==
        "run.yaml line 1: Shapes/a is 3 (a section of parameters is expected under each name)");
  CHECK(problem("Shapes: 3").starts_with("run.yaml line 1: Shapes is 3"));
}

}  // namespace
}  // namespace taper::param
