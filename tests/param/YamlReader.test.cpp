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
  CHECK(stable("A: 1\n...\nanything: [\n") == "A = 1\n");
}

TEST_CASE("lines are remembered") {
  Teuchos::ParameterList list;
  LineMap lines;
  read_yaml("# c\nA:\n  B: 1\n\n  C:\n    - 1\n    - 2\nD: {E: 1,\n  F: {G: 2}}\nH: 3\n",
            "run.yaml", list, lines);
  const LineMap expected = {{"A", 2},   {"A/B", 3}, {"A/C", 5},   {"D", 8},
                            {"D/E", 8}, {"D/F", 8}, {"D/F/G", 8}, {"H", 10}};
  CHECK(lines == expected);
}

TEST_CASE("misspelled files are refused with their line") {
  CHECK(problem("A:\n  B: 1\n C: 2\n") ==
        "run.yaml line 3: \"C: 2\" cannot be read as YAML (its indentation fits no section above "
        "it; entries of one section line up)");
  CHECK(problem("A: 1\n  B: 2\n").find("line 2: \"B: 2\"") != std::string::npos);
  CHECK(problem("  A: 1\nB: 2\n") ==
        "run.yaml line 2: \"B: 2\" cannot be read as YAML (is "
        "indented less than the first entry of the file)");
  CHECK(problem("A:\n\tB: 1\n")
            .find("line 2: \"\tB: 1\" cannot be read as YAML (a tab indents "
                  "it; YAML allows blanks only)") != std::string::npos);
  CHECK(problem("A:\n  B: 1\n  C: 2\n  B: 3\n") ==
        "run.yaml line 4: \"B: 3\" cannot be read as YAML (A/B appears twice, first on line 2)");
  CHECK(problem("A: {x: 1, x: 2}\n").find("(x appears twice)") != std::string::npos);
  CHECK(problem("A\n").find("(Name: value is expected)") != std::string::npos);
  CHECK(problem("A:1\n").find("(a blank must follow the : behind a name)") != std::string::npos);
  CHECK(problem(": 1\n").find("(the name before the : is missing)") != std::string::npos);
  CHECK(problem("'A' 1\n").find("(a : must follow the name)") != std::string::npos);
  CHECK(problem("- 1\n").find("(a list item stands where Name: value is expected)") !=
        std::string::npos);
  CHECK(problem("A: 1\n---\nB: 2\n").find("(only one document per file is read)") !=
        std::string::npos);
  CHECK(problem("A: x: y\n").find("(text with a : inside needs quotes)") != std::string::npos);
  for (const char* start : {"&a", "*a", "!a", "@a", "`a", "%a", "]"}) {
    INFO(start);
    CHECK(problem(std::string("A: ") + start + "\n").find("needs quotes)") != std::string::npos);
  }
  CHECK(problem("A: 'x\n") ==
        "run.yaml line 1: \"A: 'x\" cannot be read as YAML (the closing ' is missing)");
  CHECK(problem("A: 'x' y\n").find("(nothing but a comment may follow quoted text)") !=
        std::string::npos);
  CHECK(problem("A: |+\n  x\n").find("(after | and > only - is understood)") != std::string::npos);
}

TEST_CASE("broken lists are refused with the line of their name") {
  CHECK(problem("A: 1\nB: [1, 2\nC: 3\n") ==
        "run.yaml line 2: \"B: [1, 2\" cannot be read as YAML (its brackets do not match)");
  CHECK(problem("A: [1, [2]]\n")
            .find("(a list may hold numbers and texts only, no further lists "
                  "or sections)") != std::string::npos);
  CHECK(problem("A: [1, , 2]\n").find("(a value is missing between the brackets)") !=
        std::string::npos);
  CHECK(problem("A: ['1' 2]\n").find("(a list needs , between items and ] at its end)") !=
        std::string::npos);
  CHECK(problem("A: [1] 2\n").find("(nothing may follow the closing bracket)") !=
        std::string::npos);
  CHECK(problem("A: {x}\n").find("({...} holds entries like {Name: value})") != std::string::npos);
  CHECK(problem("A: {x: '1' y}\n").find("({...} needs , between entries and } at its end)") !=
        std::string::npos);
  CHECK(problem("A:\n  - [1]\n")
            .find("line 2: \"- [1]\" cannot be read as YAML (a list may hold "
                  "numbers and one-line texts only)") != std::string::npos);
  CHECK(problem("A:\n  -\n").find("(a list item is empty)") != std::string::npos);
}

}  // namespace
}  // namespace taper::param::detail
