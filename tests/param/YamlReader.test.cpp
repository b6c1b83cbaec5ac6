// SPDX-License-Identifier: Apache-2.0
#include "param/detail/YamlReader.hpp"

#include <Teuchos_ParameterList.hpp>
#include <Teuchos_YamlParameterListCoreHelpers.hpp>
#include <catch2/catch_test_macros.hpp>

#include "ShowTypes.hpp"
#include "support/Messages.hpp"

namespace taper::param::detail {
namespace {

using test::message_of;

Teuchos::ParameterList read(const std::string& text) {
  Teuchos::ParameterList list;
  LineMap lines;
  read_yaml(text, "run.yaml", list, lines);
  return list;
}

std::string stable(const std::string& text) {
  return test::to_stable_text(read(text));
}

std::string problem(const std::string& text) {
  return message_of([&] { read(text); });
}

TEST_CASE("sections, scalars and lists are read") {
  const auto list = read(R"(# A run
Rollout:   # how
  Temperature: 1
  Top P: 0.9
  Stop: ['a # b', c, "d\n"]
  Degrees:
    - 1
    - 2     # two
  Nested:
      Deep: on   # four deeper

Model: {Path: /a/b, Shape: {Layers: 4}}
Empty:
Nothing: []
Last: "x"  # no line end follows)");
  CHECK(list.sublist("Rollout").get<int>("Temperature") == 1);
  CHECK(list.sublist("Rollout").get<double>("Top P") == 0.9);
  CHECK(list.sublist("Rollout").get<Teuchos::Array<std::string>>("Stop").toVector() ==
        std::vector<std::string>{"a # b", "c", "d\n"});
  CHECK(list.sublist("Rollout").get<Teuchos::Array<int>>("Degrees").toVector() ==
        std::vector{1, 2});
  CHECK(list.sublist("Rollout").sublist("Nested").get<std::string>("Deep") == "on");
  CHECK(list.sublist("Model").get<std::string>("Path") == "/a/b");
  CHECK(list.sublist("Model").sublist("Shape").get<int>("Layers") == 4);
  CHECK(list.sublist("Empty").numParams() == 0);
  CHECK(list.get<Teuchos::Array<std::string>>("Nothing").size() == 0);
  CHECK(list.get<std::string>("Last") == "x");
}

TEST_CASE("what Teuchos' own reader understands is read the same") {
  const char* texts[] = {
      "%YAML 1.1\n---\nrun:\n  A: 1\n  B: 2.5\n  C: text here\n...\n",
      "run:\n  A: -3\n  B: 1e-6\n  C: .5\n  D: 1.\n  E: 3000000000\n  F: 007\n",
      "run:\n  A: [1, 2, 3]\n  B: [1, 2.5]\n  C: [a, 1]\n  D: [x/y, 'q r']\n  E: ['1', '2']\n",
      "run:\n  A:\n    - 1\n    - 2\n  B:\n    C:\n      D: 1\n    E: 2\n  F: 3\n",
      "run:\n  A: '1'\n  B: \"two\"\n  C: 'it''s'\n  D: it's\n  'E f': true\n  G: False\n",
      "run:\n  A: |\n    one\n      two\n\n    three\n  B: 1\n",
      "run:\n  A: {x: 1, y: {z: 2.5}}\n  B: http\n  C: a,b\n  D: ~/x\n  E: off\n  F: none\n",
      "run:\r\n  A: 1 # c\r\n\r\n  # d\r\n  B: 2\r\n",
  };
  for (const char* text : texts) {
    INFO(text);
    const auto theirs = Teuchos::getParametersFromYamlString(text);
    const auto ours = read(text);
    CHECK(test::to_stable_text(ours.sublist("run")) == test::to_stable_text(*theirs));
    CHECK(test::show_types(ours.sublist("run")) == test::show_types(*theirs));
  }
}

TEST_CASE("what Teuchos' own reader loses or refuses is read too") {
  CHECK(stable("A: 1\nB: 2\n") == "A = 1\nB = 2\n");
  CHECK(stable("A: 日本 # ä\n") == "A = 日本\n");
  CHECK(stable("A: [1,\n  2, # two\n  3]\nB: 4") == "A = [1, 2, 3]\nB = 4\n");
  CHECK(stable("A: http://x/y?z\n") == "A = 'http://x/y?z'\n");
  CHECK(stable("A: >\n  one\n  two\n\n  three\nB: 1") == "A = \"one two\\nthree\\n\"\nB = 1\n");
  CHECK(stable("A: |-\n  one\n  # no comment\nB: 1") == "A = \"one\\n# no comment\"\nB = 1\n");
  CHECK(stable("A:\n- 1\n- 2\nB: 3\n") == "A = [1, 2]\nB = 3\n");
  CHECK(stable("A: [true, false]\n") == "A = ['true', 'false']\n");
  CHECK(stable("\xef\xbb\xbf"
               "A: 1\n") == "A = 1\n");
  CHECK(stable("") == "");
  CHECK(stable("# only this\n\n") == "");
  CHECK(stable("A: 1\n...\n") == "A = 1\n");
}

TEST_CASE("lines are remembered") {
  Teuchos::ParameterList list;
  LineMap lines;
  read_yaml("# c\nA:\n  B: 1\n\n  C:\n    - 1\n    - 2\nD: {E: 1,\n  F: {G: 2}}\nH: 3\n",
            "run.yaml", list, lines);
  const LineMap expected = {{"A", 2},   {"A/B", 3}, {"A/C", 5},   {"D", 8},
                            {"D/E", 8}, {"D/F", 9}, {"D/F/G", 9}, {"H", 10}};
  CHECK(lines == expected);
}

TEST_CASE("plain scalars have their kind, quoted ones are text") {
  CHECK(stable("A: 1e-6\nB: '1e-6'\nC: True\nD: \"true\"\nE: 0x10\nF: ! 1\n") ==
        "A = 1.0e-06\nB = '1e-6'\nC = true\nD = 'true'\nE = 0x10\nF = '1'\n");
  CHECK(stable("A: ~\nB: null # c\nC: 'null'\nD: [~, NULL]\nE: {x: ~, y: Null}\n") ==
        "A = '~'\nB = 'null'\nC = 'null'\nD = ['~', 'NULL']\nE/x = '~'\nE/y = 'Null'\n");
  CHECK(read("A:\nB: {x: , y: }\n").sublist("B").sublist("x").numParams() == 0);
  CHECK(stable(R"(A: "a\n\u00e9\"\x41"
B: 'it''s')") == "A = \"a\\né\\\"A\"\nB = 'it''s'\n");
  CHECK(stable("A: one\n  two # c\nB: 'x # y'\nC: the 'word\nD: b#c\n") ==
        "A = one two\nB = 'x # y'\nC = 'the ''word'\nD = 'b#c'\n");
}

TEST_CASE("the last line of a file needs no end") {
  CHECK(stable("A: |\n  one") == stable("A: |\n  one\n"));
  CHECK(stable("A: 'x' # c") == "A = x\n");
}

TEST_CASE("anchors name a value that stands twice") {
  CHECK(stable("A: &a {x: 1}\nB: *a\nC: &c 2\nD: [*c, 3]\n") ==
        "A/x = 1\nB/x = 1\nC = 2\nD = [2, 3]\n");
  CHECK(problem("A: &a\n  x: *a\n")
            .find("(sections are nested too deep; does one contain itself?)") != std::string::npos);
  CHECK(problem("A: *a\n").find("(the referenced anchor is not defined)") != std::string::npos);
}

TEST_CASE("misspelled files are refused with their line") {
  CHECK(problem("A:\n  B: 1\n C: 2\n") ==
        "run.yaml line 3: \"C: 2\" cannot be read as YAML (end of map not found)");
  CHECK(problem("A: 1\n  B: 2\n").find("line 2: \"B: 2\"") != std::string::npos);
  CHECK(problem("  A: 1\nB: 2\n") ==
        "run.yaml line 2: \"B: 2\" cannot be read as YAML (a second document begins here; a "
        "file contains one document, and its top-level entries have the same indentation)");
  CHECK(problem("A:\n\tB: 1\n") ==
        "run.yaml line 2: \"\tB: 1\" cannot be read as YAML (illegal map value; it is indented "
        "with a "
        "tab, but YAML allows only spaces)");
  CHECK(problem("A:\n  B: 1\n  C: 2\n  B: 3\n") ==
        "run.yaml line 4: \"B: 3\" cannot be read as YAML (A/B appears twice, first on line 2)");
  CHECK(problem("A: {x: 1, x: 2}\n").find("(A/x appears twice, first on line 1)") !=
        std::string::npos);
  for (const char* text : {"A\n", "A:1\n", "'A' 1\n", "- 1\n"}) {
    INFO(text);
    CHECK(problem(text).find("(expected 'Name: value', with a space after the colon)") !=
          std::string::npos);
  }
  for (const char* text : {": 1\n", "'': 1\n", "[A]: 1\n"}) {
    INFO(text);
    CHECK(problem(text).find("(a name is expected before the :)") != std::string::npos);
  }
  CHECK(problem("A: 1\n---\nB: 2\n")
            .find("(a second document begins here; a file contains one document") !=
        std::string::npos);
  CHECK(problem("A: x: y\n").find("(illegal map value)") != std::string::npos);
  CHECK(problem("A: !a\n").find("(text that starts with ! needs quotes)") != std::string::npos);
  for (const char* start : {"@a", "`a", "%a", "]"}) {
    INFO(start);
    CHECK(problem(std::string("B: 1\nA: ") + start + "\n").starts_with("run.yaml line 2: \"A: "));
  }
  CHECK(problem("A: 'x\n") ==
        "run.yaml line 1: \"A: 'x\" cannot be read as YAML (illegal EOF in scalar)");
  CHECK(problem("A: \"x\nB: 2\n").find("(illegal EOF in scalar)") != std::string::npos);
  CHECK(problem("A: 'x' y\n").find("line 1: \"A: 'x' y\"") != std::string::npos);
  CHECK(problem("A: \"\\q\"\n").find("(unknown escape character: q)") != std::string::npos);
}

TEST_CASE("broken lists are refused with their line") {
  CHECK(problem("A: 1\nB: [1, 2\n") ==
        "run.yaml line 2: \"B: [1, 2\" cannot be read as YAML (end of sequence flow not found)");
  for (const char* text : {"A: [1, [2]]\n", "A: [{x: 1}]\n", "A:\n  - [1]\n", "A:\n  - x: 1\n"}) {
    INFO(text);
    CHECK(problem(text).find("(a list may hold numbers and texts only, no further lists or "
                             "sections)") != std::string::npos);
  }
  for (const char* text : {"A: [1, , 2]\n", "A:\n  -\n"}) {
    INFO(text);
    CHECK(problem(text).find("(a list item is empty)") != std::string::npos);
  }
  for (const char* text : {"A: ['1' 2]\n", "A: [1] 2\n", "A: {x: '1' y}\n"}) {
    INFO(text);
    CHECK(problem(text).starts_with("run.yaml line 1: \"A: "));
  }
  CHECK(problem("A:\n  - 1\n  - [2]\n").starts_with("run.yaml line 3: \"- [2]\""));
}

}  // namespace
}  // namespace taper::param::detail
