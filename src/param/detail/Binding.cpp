// SPDX-License-Identifier: Apache-2.0
#include "param/detail/Binding.hpp"

#include <cmath>

#include "base/Text.hpp"

namespace taper::param::detail {
namespace {

std::string format_limit(double limit) {
  const auto integer = to_integer(Value::of_number(limit));
  return integer ? std::to_string(*integer) : format_number(limit);
}

// How one scalar of type T is read, checked and shown.
template <class T>
struct Scalar;

template <>
struct Scalar<double> {
  static constexpr const char* kOne = "a number";
  static constexpr const char* kMany = "numbers";

  std::optional<double> read(const Value& value) const { return to_number(value); }
  std::string check(double number, const Limits& limits) const {
    return limits.allow(number) ? "" : "must be " + limits.describe();
  }
  Value show(double number) const { return Value::of_number(number); }
};

template <>
struct Scalar<std::int64_t> {
  static constexpr const char* kOne = "an integer";
  static constexpr const char* kMany = "integers";

  IntegerRange range;

  std::optional<std::int64_t> read(const Value& value) const { return to_integer(value); }
  std::string check(std::int64_t integer, const Limits& limits) const {
    if (!limits.allow(static_cast<double>(integer))) return "must be " + limits.describe();
    if (integer >= range.low && integer <= range.high) return "";
    return "must be between " + std::to_string(range.low) + " and " + std::to_string(range.high);
  }
  Value show(std::int64_t integer) const { return Value::of_integer(integer); }
};

template <>
struct Scalar<std::string> {
  static constexpr const char* kOne = "text";
  static constexpr const char* kMany = "texts";

  std::optional<std::string> read(const Value& value) const {
    if (value.kind != Value::Kind::kText) return std::nullopt;
    return value.text;
  }
  std::string check(const std::string&, const Limits&) const { return ""; }
  Value show(const std::string& text) const { return Value::of_text(text); }
};

template <class T>
constexpr bool kIsText = std::is_same_v<T, std::string>;

template <class T>
class ScalarBinding : public Binding {
 public:
  ScalarBinding(Access<T> member, Scalar<T> scalar)
      : member_(std::move(member)), scalar_(std::move(scalar)) {}

  std::optional<Refusal> take(const Value& value) override {
    const auto scalar = scalar_.read(value);
    if (!scalar) return refuse(value);
    if (const auto reason = scalar_.check(*scalar, limits); !reason.empty())
      return Refusal{"", show_found(value), reason, ""};
    if constexpr (kIsText<T>) {
      if (must_hold_something && scalar->empty())
        return Refusal{"", "empty", "some text is needed", ""};
    }
    member_.write(*scalar);
    return std::nullopt;
  }
  Value show() const override { return scalar_.show(member_.read()); }
  std::string expects() const override { return Scalar<T>::kOne; }
  bool has_limits() const override { return !kIsText<T>; }

 private:
  Access<T> member_;
  Scalar<T> scalar_;
};

// A scalar stands for a list of one, "none" for the empty list.
template <class T>
class ListBinding : public Binding {
 public:
  ListBinding(Access<std::vector<T>> member, Scalar<T> scalar)
      : member_(std::move(member)), scalar_(std::move(scalar)) {}

  std::optional<Refusal> take(const Value& value) override {
    std::vector<Value> items;
    if (value.kind == Value::Kind::kList)
      items = value.items;
    else if (!means_none(value))
      items = {value};
    std::vector<T> list;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto scalar = scalar_.read(items[i]);
      if (!scalar) return refuse(value);
      const std::string at = items.size() > 1 ? "[" + std::to_string(i) + "]" : "";
      if (const auto reason = scalar_.check(*scalar, limits); !reason.empty())
        return Refusal{at, show_found(items[i]), reason, ""};
      list.push_back(*scalar);
    }
    if (must_hold_something && list.empty())
      return Refusal{"", "empty", "at least one item is needed", ""};
    member_.write(list);
    return std::nullopt;
  }
  Value show() const override {
    std::vector<Value> items;
    for (const T& scalar : member_.read()) items.push_back(scalar_.show(scalar));
    return Value::of_list(std::move(items));
  }
  std::string expects() const override { return std::string("a list of ") + Scalar<T>::kMany; }
  bool has_limits() const override { return !kIsText<T>; }
  bool is_list() const override { return true; }

 private:
  Access<std::vector<T>> member_;
  Scalar<T> scalar_;
};

class FlagBinding : public Binding {
 public:
  explicit FlagBinding(Access<bool> member) : member_(std::move(member)) {}

  std::optional<Refusal> take(const Value& value) override {
    const auto flag = to_flag(value);
    if (!flag) return refuse(value);
    member_.write(*flag);
    return std::nullopt;
  }
  Value show() const override { return Value::of_flag(member_.read()); }
  std::string expects() const override { return "true or false"; }

 private:
  Access<bool> member_;
};

class ChoiceBinding : public Binding {
 public:
  explicit ChoiceBinding(ChoiceAccess member) : member_(std::move(member)) {}

  std::optional<Refusal> take(const Value& value) override {
    // Names like 8 or true arrive typed.
    const std::string text = value.kind == Value::Kind::kText ? value.text : show_found(value);
    for (std::size_t i = 0; i < member_.names.size(); ++i) {
      if (!equal_ignoring_case(member_.names[i], text)) continue;
      member_.write(i);
      return std::nullopt;
    }
    const std::string near = nearest(text, member_.names);
    return Refusal{"", show_found(value), "must be " + expects(),
                   near.empty() ? "" : "; did you mean " + near + "?"};
  }
  Value show() const override { return Value::of_text(member_.names[member_.read()]); }
  std::string expects() const override { return "one of " + join(member_.names); }

 private:
  ChoiceAccess member_;
};

}  // namespace

bool Limits::allow(double number) const {
  if (low && !(low_allowed ? number >= *low : number > *low)) return false;
  return !(high && !(high_allowed ? number <= *high : number < *high));
}

std::string Limits::describe() const {
  std::string text;
  if (low && high && low_allowed && high_allowed)
    return "between " + format_limit(*low) + " and " + format_limit(*high);
  if (low) text = (low_allowed ? "at least " : "above ") + format_limit(*low);
  if (low && high) text += " and ";
  if (high) text += (high_allowed ? "at most " : "below ") + format_limit(*high);
  return text;
}

Refusal Binding::refuse(const Value& value) const {
  std::string advice;
  if (expects().starts_with("text") && value.kind != Value::Kind::kList &&
      value.kind != Value::Kind::kSection && value.kind != Value::Kind::kNothing)
    advice = "; to mean text, put it in quotes";
  return Refusal{"", show_found(value), expects() + " is expected, not " + name_kind(value),
                 advice};
}

std::unique_ptr<Binding> bind_number(Access<double> member) {
  return std::make_unique<ScalarBinding<double>>(std::move(member), Scalar<double>{});
}
std::unique_ptr<Binding> bind_integer(Access<std::int64_t> member, IntegerRange range) {
  return std::make_unique<ScalarBinding<std::int64_t>>(std::move(member),
                                                       Scalar<std::int64_t>{range});
}
std::unique_ptr<Binding> bind_text(Access<std::string> member) {
  return std::make_unique<ScalarBinding<std::string>>(std::move(member), Scalar<std::string>{});
}
std::unique_ptr<Binding> bind_flag(Access<bool> member) {
  return std::make_unique<FlagBinding>(std::move(member));
}
std::unique_ptr<Binding> bind_choice(ChoiceAccess member) {
  return std::make_unique<ChoiceBinding>(std::move(member));
}
std::unique_ptr<Binding> bind_number_list(Access<std::vector<double>> member) {
  return std::make_unique<ListBinding<double>>(std::move(member), Scalar<double>{});
}
std::unique_ptr<Binding> bind_integer_list(Access<std::vector<std::int64_t>> member,
                                           IntegerRange range) {
  return std::make_unique<ListBinding<std::int64_t>>(std::move(member),
                                                     Scalar<std::int64_t>{range});
}
std::unique_ptr<Binding> bind_text_list(Access<std::vector<std::string>> member) {
  return std::make_unique<ListBinding<std::string>>(std::move(member), Scalar<std::string>{});
}

}  // namespace taper::param::detail
