// SPDX-License-Identifier: Apache-2.0
#include "param/detail/Value.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "param/detail/YamlScalar.hpp"

namespace taper::param::detail {
namespace {

using Kind = Value::Kind;

TEST_CASE("unquoted scalars get the kind that their spelling shows") {
  for (const char* text : {"0", "1", "-3", "+3", "007", "9223372036854775807"})
    CHECK(infer_scalar(text).kind == Kind::kInteger);
  for (const char* text :
       {"1.0", "1.", ".5", "-2.5e-3", "1e3", "1E+20", ".inf", "-.inf", "9223372036854775808"})
    CHECK(infer_scalar(text).kind == Kind::kNumber);
  for (const char* text : {"true", "False", "TRUE"}) CHECK(infer_scalar(text).kind == Kind::kFlag);
  for (const char* text : {"", "a", "yes", "off", "none", "inf", "nan", ".nan", "0x10", "1_000",
                           "1 2", "2x4", "1e", ".", "-", "+-1", "1e999", "--1"})
    CHECK(infer_scalar(text).kind == Kind::kText);
}

TEST_CASE("numbers are exact") {
  CHECK(infer_scalar("1e-6").number == 1e-6);
  CHECK(infer_scalar("0.1").number == 0.1);
  CHECK(infer_scalar("-.inf").number == -std::numeric_limits<double>::infinity());
  CHECK(infer_scalar("-9223372036854775808").integer == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("integers may be written as whole numbers") {
  CHECK(to_integer(Value::of_number(1e3)) == 1000);
  CHECK(to_integer(Value::of_number(-2.0)) == -2);
  CHECK(to_integer(Value::of_text("1e3")) == 1000);
  CHECK(to_integer(Value::of_text("9007199254740993")) == 9007199254740993);
  CHECK_FALSE(to_integer(Value::of_number(1.5)));
  CHECK_FALSE(to_integer(Value::of_number(9223372036854775808.0)));
  CHECK_FALSE(to_integer(Value::of_number(HUGE_VAL)));
  CHECK_FALSE(to_integer(Value::of_number(std::nan(""))));
  CHECK_FALSE(to_integer(Value::of_flag(true)));
}

TEST_CASE("numbers may be written as text, but not as words") {
  CHECK(to_number(Value::of_text("0.5")) == 0.5);
  CHECK(to_number(Value::of_text("inf")) == HUGE_VAL);
  CHECK(to_number(Value::of_integer(1)) == 1.0);
  for (const char* text : {"", "nan", "infinity", "hot", "1 ", "0x1p3"})
    CHECK_FALSE(to_number(Value::of_text(text)));
  CHECK_FALSE(to_number(Value::of_number(std::nan(""))));
  CHECK_FALSE(to_number(Value::of_flag(true)));
}

TEST_CASE("flags have three spellings") {
  for (const char* text : {"true", "YES", "On"}) CHECK(to_flag(Value::of_text(text)) == true);
  for (const char* text : {"false", "no", "OFF"}) CHECK(to_flag(Value::of_text(text)) == false);
  for (const char* text : {"", "y", "1", "none"}) CHECK_FALSE(to_flag(Value::of_text(text)));
  CHECK_FALSE(to_flag(Value::of_integer(1)));
}

TEST_CASE("formatted numbers read back as the same number and look like one") {
  CHECK(format_number(1) == "1.0");
  CHECK(format_number(1e-6) == "1.0e-06");
  CHECK(format_number(1e20) == "1.0e+20");
  CHECK(format_number(0.1) == "0.1");
  for (const double number : {0.0, -0.0, 1.0 / 3, 5e-324, 1.7976931348623157e308, -1e-300, 123456.0,
                              HUGE_VAL, -HUGE_VAL}) {
    const Value value = infer_scalar(format_number(number));
    CHECK(value.kind == Kind::kNumber);
    CHECK(value.number == number);
    CHECK(std::signbit(value.number) == std::signbit(number));
  }
}

TEST_CASE("floats are shown as the decimals that they stand for") {
  CHECK(widen(0.1f) == 0.1);
  CHECK(widen(1e-6f) == 1e-6);
  CHECK(widen(HUGE_VALF) == HUGE_VAL);
  CHECK(static_cast<float>(widen(1.0f / 3)) == 1.0f / 3);
}

TEST_CASE("texts are quoted where they would read as something else") {
  CHECK(format_scalar(Value::of_text("data/x_y.h5")) == "data/x_y.h5");
  CHECK(format_scalar(Value::of_text("none")) == "none");
  CHECK(format_scalar(Value::of_text("")) == "''");
  CHECK(format_scalar(Value::of_text("1")) == "'1'");
  CHECK(format_scalar(Value::of_text("true")) == "'true'");
  CHECK(format_scalar(Value::of_text("no")) == "'no'");
  CHECK(format_scalar(Value::of_text("two\nlines")) == "\"two\\nlines\"");
  CHECK(format_scalar(Value::of_text("it's")) == "'it''s'");
  CHECK(format_scalar(Value::of_text("a\n\t\"\\\x01")) == "\"a\\n\\t\\\"\\\\\\x01\"");
}

}  // namespace
}  // namespace taper::param::detail
