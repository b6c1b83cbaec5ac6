// SPDX-License-Identifier: Apache-2.0
#include "reward/MathAnswer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "base/Random.hpp"

namespace taper::testing {
namespace {

// Both ways round.
bool same(const std::string& a, const std::string& b) {
  const bool result = same_math_answer(a, b);
  CHECK(same_math_answer(b, a) == result);
  return result;
}

TEST_CASE("one number in several spellings") {
  for (const char* half :
       {"1/2", "0.5", ".5", "2/4", "\\frac12", "\\dfrac{1}{2}", "\\tfrac{2}{4}", "50\\%", "50 %",
        "0.50", "+0.5", "x=\\frac{1}{2}", "$0.5$", "\\frac{0.5}{1}", "-1/-2", "0.5\\text{ cm}"}) {
    CAPTURE(half);
    CHECK(same(half, "0.5"));
    CHECK(!same(half, "-0.5"));
    CHECK(!same(half, "0.51"));
  }
  CHECK(same("1{,}000", "1000"));
  CHECK(same("1,000", "1000"));
  CHECK(same("2\\frac{1}{2}", "5/2"));
  CHECK(same("2 1/2", "2.5"));
  CHECK(!same("2 1/2", "21/2"));
  CHECK(same("0.\\overline{3}", "1/3"));
  CHECK(!same("0.3333", "1/3"));
  CHECK(same("-\\frac{1}{3}", "\\frac{-1}{3}"));
  CHECK(same("-0", "0"));
  CHECK(same("50\\%", "50"));
  CHECK(!same("50\\%", "5"));
  CHECK(!same("50\\%", "0.5\\%"));
  CHECK(same("-12.5\\%", "-1/8"));
  CHECK(!same("9007199254740993", "9007199254740992"));  // equal as doubles
}

TEST_CASE("numbers beyond 38 digits are compared by their spelling") {
  const std::string big = "1" + std::string(200, '0');
  CHECK(same(big, big));
  CHECK(same("x=" + big, big + " "));
  CHECK(!same(big, big.substr(0, 200) + "1"));
  CHECK(!same(big, big + "/1"));
  CHECK(!same(big, "1"));
  const std::string small = "1/1" + std::string(37, '0');  // a hundredth of it does not fit
  CHECK(!same(small + "\\%", small + "0"));
  CHECK(same(small + "\\%", small));
}

TEST_CASE("tuples, intervals and lists are compared by their parts") {
  CHECK(same("(1/2, 3)", "(0.5,3)"));
  CHECK(same("\\left(\\frac12, 3\\right)", "(1/2,3)"));
  CHECK(!same("(1/2, 3)", "(3, 1/2)"));
  CHECK(!same("(1, 2]", "(1, 2)"));
  CHECK(same("[0.5, \\infty)", "[1/2,\\infty)"));
  CHECK(same("\\{1/2, 2\\}", "\\{0.5, 2\\}"));
  CHECK(same("1/2, x", "0.5,x"));
  CHECK(!same("(1, 2)", "(1, 2, 3)"));
  CHECK(same("((1/2, 1), 2)", "((0.5, 1), 2)"));
  CHECK(same("(1,234)", "(1, 234)"));
}

TEST_CASE("words without meaning are dropped once, not what stands around them joined") {
  CHECK(same("\\left(1,2\\right)", "(1,2)"));
  CHECK(same("\\left 5", "5"));
  CHECK(!same("\\le\\leftft(1,2)", "(1,2)"));
  CHECK(!same("\\le\\leftft 5", "5"));
}

TEST_CASE("all else is compared by its spelling") {
  CHECK(same("\\sqrt3", "\\sqrt{3}"));
  CHECK(same("x + 1", "x+1"));
  CHECK(!same("x+1", "1+x"));
  CHECK(!same("\\frac{1}{0}", "\\frac{2}{0}"));
  CHECK(same("\\frac{\\pi}{2}", "\\frac\\pi2") == false);
  CHECK(same("", ""));
  CHECK(!same("1/2", "\\frac{\\pi}{2}"));
}

TEST_CASE("any bytes are compared without harm, and each text is itself") {
  RandomStream random(11, RandomPurpose::kTest, 0, 0);
  const std::string alphabet = "0123456789.,-/()[]{}\\%frac $\xC3\xFF\n";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto n = random.below(40); n > 0; --n) text += alphabet[random.below(alphabet.size())];
    CAPTURE(text);
    CHECK(same_math_answer(text, text));
  }
  const std::string deep(5000, '(');
  CHECK(same_math_answer(deep, deep));
  std::string nested;
  for (int i = 0; i < 3000; ++i) nested += "(1,";
  CHECK(same_math_answer(nested + std::string(3000, ')'), nested + std::string(3000, ')')));
}

}  // namespace
}  // namespace taper::testing
