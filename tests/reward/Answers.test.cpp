// SPDX-License-Identifier: Apache-2.0
#include "reward/Answers.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Random.hpp"

namespace taper::testing {
namespace {

TEST_CASE("task answers stand behind the last mark") {
  CHECK(score_task_answer("102", "12+34=46+56=102#102") == 1);
  CHECK(score_task_answer("102", "#102\n") == 1);
  CHECK(score_task_answer("102", "#7#102") == 1);
  CHECK(score_task_answer("102", "#102#7") == 0);
  CHECK(score_task_answer("102", "102") == 0);
  CHECK(score_task_answer("102", "#1023") == 0);
  CHECK(score_task_answer("102", "#102 and more") == 0);
  CHECK(score_task_answer("102", "#0102") == 0);
  CHECK(score_task_answer("102", "") == 0);
  CHECK(score_task_answer("102", "#") == 0);
}

TEST_CASE("exact match ignores white space at the ends only") {
  CHECK(score_exact_match("a b", " a b\n") == 1);
  CHECK(score_exact_match("a b", "a  b") == 0);
}

TEST_CASE("GSM8K follows verl") {
  const auto strict = Gsm8kRule::kStrict, flexible = Gsm8kRule::kFlexible;
  CHECK(extract_gsm8k_answer("so #### 1,234", strict) == "1234");
  CHECK(extract_gsm8k_answer("#### 5 then #### -7.5", strict) == "-7.5");
  CHECK(extract_gsm8k_answer("#### 5 then #### none", strict) == "5");
  CHECK(extract_gsm8k_answer("####5", strict) == std::nullopt);
  CHECK(extract_gsm8k_answer("#### $5", strict) == std::nullopt);
  CHECK(extract_gsm8k_answer("#### 18.", strict) == "18.");  // a full stop counts, also there
  CHECK(extract_gsm8k_answer("it is 12 or 13.", flexible) == "13.");
  CHECK(extract_gsm8k_answer("it is 12 .", flexible) == "12");
  CHECK(extract_gsm8k_answer("5-3", flexible) == "-3");
  CHECK(extract_gsm8k_answer("none", flexible) == std::nullopt);
  CHECK(score_gsm8k("1,234", "#### 1,234", strict) == 1);
  CHECK(score_gsm8k("1234", "1,234", flexible) == 0);  // commas stay in the flexible rule
  CHECK(score_gsm8k("72", "#### 72" + std::string(293, ' '), strict) == 1);
  CHECK(score_gsm8k("72", "#### 72" + std::string(294, ' '), strict) ==
        0);  // only 300 characters count
  std::string accents;
  for (int i = 0; i < 293; ++i) accents += "\xC3\xA9";
  CHECK(score_gsm8k("72", "#### 72" + accents, strict) == 1);  // characters, not bytes
}

TEST_CASE("boxed answers") {
  CHECK(extract_boxed_answer("\\boxed{1} then \\boxed{\\frac{1}{2}}.") == "\\frac{1}{2}");
  CHECK(extract_boxed_answer("\\fbox{a}") == "a");
  CHECK(extract_boxed_answer("so \\boxed 42$ done") == "42");
  CHECK(extract_boxed_answer("\\boxed{1} then \\boxed{2") == std::nullopt);
  CHECK(extract_boxed_answer("no box") == std::nullopt);
  CHECK(score_boxed_math("\\frac{1}{2}", "\\boxed{\\dfrac12}") == 1);
  CHECK(score_boxed_math("1/2", "\\boxed{ 0.5 }") == 1);
  CHECK(score_boxed_math("\\boxed{3}", "\\boxed{x = 3}") == 1);
  CHECK(score_boxed_math("\\sqrt{3}", "\\boxed{\\sqrt3}") == 1);
  CHECK(score_boxed_math("90", "\\boxed{90^\\circ}") == 1);
  CHECK(score_boxed_math("50", "\\boxed{50\\%}") == 1);
  CHECK(score_boxed_math("0.5", "\\boxed{.5}") == 1);
  CHECK(score_boxed_math("(1,2)", "\\boxed{\\left( 1, 2 \\right)}") == 1);
  CHECK(score_boxed_math("5", "\\boxed{5\\text{ cm}}") == 1);
  CHECK(score_boxed_math("1/2", "\\boxed{2/4}") == 1);
  CHECK(score_boxed_math("1/2", "\\boxed{2/5}") == 0);
  CHECK(score_boxed_math("3", "3") == 0);
}

TEST_CASE("any bytes are scored without harm, and a truth scores itself") {
  RandomStream random(7, RandomPurpose::kTest, 0, 0);
  const std::string alphabet = "#0123456789.,-$ {}\\/=%boxedfracsqrtttext\xC3\xFF\n";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto n = random.below(60); n > 0; --n) text += alphabet[random.below(alphabet.size())];
    for (const double score :
         {score_task_answer("1", text), score_exact_match("1", text),
          score_gsm8k("1", text, Gsm8kRule::kStrict), score_gsm8k("1", text, Gsm8kRule::kFlexible),
          score_boxed_math(text, text)})
      CHECK((score == 0 || score == 1));
    CHECK(score_boxed_math("a" + std::to_string(round),
                           "\\boxed{a" + std::to_string(round) + "}") == 1);
  }
}

TEST_CASE("long responses take linear time") {
  const std::string boxes(2'000'000, '{');
  CHECK(score_boxed_math("1", "\\boxed" + boxes) == 0);
  std::string marks;
  for (int i = 0; i < 200'000; ++i) marks += "#### ";
  CHECK(score_gsm8k("1", marks, Gsm8kRule::kStrict) == 0);
  std::string fractions = "\\boxed{";
  for (int i = 0; i < 20'000; ++i) fractions += "\\frac{";
  CHECK(score_boxed_math("1", fractions + std::string(20'001, '}')) == 0);
}

}  // namespace
}  // namespace taper::testing
