// SPDX-License-Identifier: Apache-2.0
//
// Verifiers: 1 if a response gives the known answer, else 0. Time and memory are linear in the
// response; nothing depends on the locale; any bytes are accepted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace taper {

// The final marked answer of the in-tree tasks: what stands after the last '#', without white
// space at its ends.
std::optional<std::string> extract_task_answer(std::string_view response);
double score_task_answer(std::string_view truth, std::string_view response);

// Whole response equal to the truth, both without white space at their ends.
double score_exact_match(std::string_view truth, std::string_view response);

// GSM8K by the rules of verl, over the last 300 characters. Strict: the last "#### number", commas
// removed. Flexible: the last number that is neither empty nor ".", as it stands. The truth is the
// number after "####", without commas.
enum class Gsm8kRule { kStrict, kFlexible };
std::optional<std::string> extract_gsm8k_answer(std::string_view response, Gsm8kRule rule);
double score_gsm8k(std::string_view truth, std::string_view response, Gsm8kRule rule);

// The content of the last \boxed{...} or \fbox{...}, braces matched by counting, or of "\boxed x";
// nothing if there is none or its brace is not closed.
std::optional<std::string> extract_boxed_answer(std::string_view response);

// MATH: the last boxed answer against the truth, as MathAnswer.hpp says.
double score_boxed_math(std::string_view truth, std::string_view response);

// The normal form of an answer's spelling: fractions, spaces, units, left and right, degrees,
// percent and leading zeros are written alike.
std::string normalize_math(std::string_view answer);

}  // namespace taper
