// SPDX-License-Identifier: Apache-2.0
//
// A parameter's value independent of how a file spells it: what readers produce and bindings take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taper::param::detail {

struct Value {
  enum class Kind { kNothing, kFlag, kInteger, kNumber, kText, kList, kSection };

  Kind kind = Kind::kNothing;
  bool flag = false;
  std::int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Value> items;  // scalars only

  static Value of_flag(bool flag);
  static Value of_integer(std::int64_t integer);
  static Value of_number(double number);
  static Value of_text(std::string text);
  static Value of_list(std::vector<Value> items);
  static Value of_section();
};

// The value of an unquoted scalar: true and false are flags, decimal numbers are integers or
// numbers, everything else (also yes, off, none, 0x10) is text, to be judged by who asks for it.
Value infer_scalar(const std::string& text);

// The number that a value is, also when it is written as text ("1e-6"); empty when it is none.
std::optional<double> to_number(const Value& value);

// The integer that a value is; 1e3 and 2.0 count as integers, 2.5 does not.
std::optional<std::int64_t> to_integer(const Value& value);

// true/false, yes/no, on/off in any case.
std::optional<bool> to_flag(const Value& value);

// "none", "off", "null" or "~" in any case.
bool means_none(const Value& value);

// For messages: `"hot"`, `3`, `[1, 2]`, `a section`; long texts are cut.
std::string show_found(const Value& value);

// For messages: "text", "an integer", "a list".
std::string name_kind(const Value& value);

// Shortest decimal that reads back as the same double, always recognisable as a number: "1.0".
std::string format_number(double number);

// The double with the shortest decimal that is this float: 0.1f gives 0.1, not 0.10000000149.
double widen(float number);

bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace taper::param::detail
