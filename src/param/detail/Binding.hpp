// SPDX-License-Identifier: Apache-2.0
//
// The link between one described parameter and one member of an options struct. Types are erased
// here: templates only wrap members into read and write functions.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "param/detail/Value.hpp"

namespace taper::param::detail {

// What is wrong with a value: `<path><at> is <found> (<reason>)<advice>`.
struct Refusal {
  std::string at;  // "[2]" for an item of a list
  std::string found;
  std::string reason;
  std::string advice;
};

struct Limits {
  std::optional<double> low;
  std::optional<double> high;
  bool low_allowed = true;
  bool high_allowed = true;

  bool allow(double number) const;
  std::string describe() const;  // "at least 0 and below 1"; empty without limits
};

class Binding {
 public:
  virtual ~Binding() = default;

  // Writes the member, or leaves it and says why not.
  virtual std::optional<Refusal> take(const Value& value) = 0;
  virtual Value show() const = 0;
  virtual std::string expects() const = 0;  // "a number", "one of static, adaptive"
  virtual bool has_limits() const { return false; }
  virtual bool is_list() const { return false; }

  Limits limits;
  bool must_hold_something = false;  // texts and lists

 protected:
  Refusal refuse(const Value& value) const;
};

// Reads and writes a member as the type T that bindings work with.
template <class T>
struct Access {
  std::function<T()> read;
  std::function<void(const T&)> write;
};

template <class T, class Member>
T convert(const Member& member) {
  if constexpr (std::is_same_v<Member, float>)
    return widen(member);
  else
    return static_cast<T>(member);
}

template <class T>
Access<T> access_to(auto& member) {
  return {[&member] { return convert<T>(member); },
          [&member](const T& value) {
            member = static_cast<std::remove_reference_t<decltype(member)>>(value);
          }};
}

template <class T, class Member>
Access<std::vector<T>> access_to_list(std::vector<Member>& member) {
  return {[&member] {
            std::vector<T> values;
            values.reserve(member.size());
            for (const Member& value : member) values.push_back(convert<T>(value));
            return values;
          },
          [&member](const std::vector<T>& values) {
            member.clear();
            for (const T& value : values) member.push_back(static_cast<Member>(value));
          }};
}

// Integers that the member's type can hold; those above 2^63 cannot be written in a file anyway.
struct IntegerRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

template <class Integer>
IntegerRange range_of() {
  using Limits = std::numeric_limits<Integer>;
  if constexpr (sizeof(Integer) == sizeof(std::int64_t) && std::is_unsigned_v<Integer>)
    return {0, std::numeric_limits<std::int64_t>::max()};
  else
    return {static_cast<std::int64_t>(Limits::min()), static_cast<std::int64_t>(Limits::max())};
}

// Finds the position of the option in use, sets the option of a position.
struct ChoiceAccess {
  std::vector<std::string> names;
  std::function<std::size_t()> read;
  std::function<void(std::size_t)> write;
};

std::unique_ptr<Binding> bind_number(Access<double> member);
std::unique_ptr<Binding> bind_integer(Access<std::int64_t> member, IntegerRange range);
std::unique_ptr<Binding> bind_text(Access<std::string> member);
std::unique_ptr<Binding> bind_flag(Access<bool> member);
std::unique_ptr<Binding> bind_choice(ChoiceAccess member);
std::unique_ptr<Binding> bind_number_list(Access<std::vector<double>> member);
std::unique_ptr<Binding> bind_integer_list(Access<std::vector<std::int64_t>> member,
                                           IntegerRange range);
std::unique_ptr<Binding> bind_text_list(Access<std::vector<std::string>> member);

// The bindings by the type of the member, for Section and CommandLine.

template <class T>
concept IntegerType = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <std::floating_point T>
std::unique_ptr<Binding> make_number(T& member) {
  return bind_number(access_to<double>(member));
}
template <IntegerType T>
std::unique_ptr<Binding> make_integer(T& member) {
  return bind_integer(access_to<std::int64_t>(member), range_of<T>());
}
inline std::unique_ptr<Binding> make_text(std::string& member) {
  return bind_text(access_to<std::string>(member));
}
inline std::unique_ptr<Binding> make_flag(bool& member) {
  return bind_flag(access_to<bool>(member));
}
template <class T>
std::unique_ptr<Binding> make_list(std::vector<T>& member) {
  if constexpr (std::is_same_v<T, std::string>)
    return bind_text_list(access_to_list<std::string>(member));
  else if constexpr (std::is_floating_point_v<T>)
    return bind_number_list(access_to_list<double>(member));
  else
    return bind_integer_list(access_to_list<std::int64_t>(member), range_of<T>());
}

// A member that holds none of the options (a default outside the list) shows as the first.
template <class T>
std::unique_ptr<Binding> make_choice(T& member, std::vector<std::pair<std::string, T>> options) {
  ChoiceAccess access;
  for (const auto& option : options) access.names.push_back(option.first);
  access.read = [&member, options] {
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (options[i].second == member) return i;
    }
    return std::size_t{0};
  };
  access.write = [&member, options](std::size_t chosen) { member = options[chosen].second; };
  return bind_choice(std::move(access));
}

}  // namespace taper::param::detail
