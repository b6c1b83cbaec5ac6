// SPDX-License-Identifier: Apache-2.0
#include "reward/Rational.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace taper::testing {
namespace {

TEST_CASE("the same numbers are equal as Python's fractions says") {
  std::ifstream file(TAPER_GOLDEN_DIR "/text/rationals.jsonl");  // make_rationals.py
  int pairs = 0, equal = 0;
  for (std::string line; std::getline(file, line); ++pairs) {
    const auto json = nlohmann::json::parse(line);
    CAPTURE(line);
    const auto a = parse_rational(json["a"].get<std::string>());
    const auto b = parse_rational(json["b"].get<std::string>());
    REQUIRE(a);
    REQUIRE(b);
    CHECK((*a == *b) == json["same"].get<bool>());
    equal += json["same"].get<bool>() ? 1 : 0;
  }
  CHECK(pairs == 1500);
  CHECK(equal > 300);
}

TEST_CASE("what is no number is not taken for one") {
  for (const char* text : {"",
                           "-",
                           "x",
                           "1+2",
                           "1/0",
                           "\\frac{1}{0}",
                           "1/2/3",
                           "\\frac{a}{b}",
                           "\\frac{1}",
                           "(1,2)",
                           "1,23",
                           "1,2345",
                           "1 000",
                           "3\\frac{4}{3}",
                           "3.5\\frac{1}{2}",
                           "1e5",
                           "0x10",
                           "1..2",
                           "0.\\overline{}",
                           "0.\\overline{3",
                           "\\sqrt{4}",
                           "2^3",
                           "1 2",
                           "--1",
                           "-$-1",
                           "5\\text{",
                           "5\\text{3 cm}",
                           "nan",
                           "inf",
                           "\xC3\x97",
                           "."}) {
    CAPTURE(text);
    CHECK(!parse_rational(text));
  }
}

TEST_CASE("long numbers are exact up to a limit, beyond which there is none") {
  const std::string nines(38, '9');
  const auto a = parse_rational(nines);
  REQUIRE(a);
  CHECK(*a == *parse_rational(nines + "/1"));
  CHECK(!(*a == *parse_rational(nines.substr(1) + "8")));
  CHECK(*parse_rational("-" + nines + "/" + nines) == *parse_rational("-1"));
  CHECK(*parse_rational("0.\\overline{" + nines.substr(1) + "}") == *parse_rational("1"));
  for (const std::string& text :
       {nines + "9", "0." + nines, "1/" + nines + "9", "\\frac{" + nines + "}{0.1}",
        nines + "\\frac12", "0.1\\overline{" + nines + "}", "1" + std::string(500, '0'),
        std::string(kMostCharacters, '9'), "\\frac{0." + nines + "}{0." + nines + "}"}) {
    CAPTURE(text);
    CHECK(!parse_rational(text));
  }
  CHECK(parse_rational(std::string(kMostCharacters, '0')));
  CHECK(!parse_rational(std::string(kMostCharacters + 1, '0')));
}

}  // namespace
}  // namespace taper::testing
