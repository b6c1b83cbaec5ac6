// SPDX-License-Identifier: Apache-2.0
#include "param/detail/ListTools.hpp"

#include <Teuchos_Array.hpp>
#include <Teuchos_ParameterList.hpp>
#include <algorithm>
#include <limits>

#include "param/detail/YamlScalar.hpp"

namespace taper::param::detail {
namespace {

bool fits_int(std::int64_t integer) {
  return integer >= std::numeric_limits<int>::min() && integer <= std::numeric_limits<int>::max();
}

// A flag among numbers makes a list of texts too: there is no number that a flag is.
std::string to_item_text(const Value& item) {
  return item.kind == Value::Kind::kText ? item.text : format_scalar(item);
}

template <class T, class Convert>
Teuchos::Array<T> to_array(const std::vector<Value>& items, Convert convert) {
  Teuchos::Array<T> array;
  for (const auto& item : items) array.push_back(convert(item));
  return array;
}

void put_list(Teuchos::ParameterList& list, const std::string& name,
              const std::vector<Value>& items) {
  const auto all_are = [&](auto test) {
    return !items.empty() && std::all_of(items.begin(), items.end(), test);
  };
  const auto is_integer = [](const Value& item) { return item.kind == Value::Kind::kInteger; };
  if (all_are([&](const Value& item) { return is_integer(item) && fits_int(item.integer); })) {
    list.set(name,
             to_array<int>(items, [](const Value& v) { return static_cast<int>(v.integer); }));
  } else if (all_are(is_integer)) {
    list.set(name, to_array<long long>(items, [](const Value& v) { return v.integer; }));
  } else if (all_are([&](const Value& item) {
               return is_integer(item) || item.kind == Value::Kind::kNumber;
             })) {
    list.set(name, to_array<double>(items, [](const Value& v) { return *to_number(v); }));
  } else {
    list.set(name, to_array<std::string>(items, to_item_text));
  }
}

template <class T>
std::optional<Value> get_as(const Teuchos::ParameterEntry& entry, Value (*make)(T)) {
  if (!entry.isType<T>()) return std::nullopt;
  return make(Teuchos::getValue<T>(entry));
}

template <class T>
std::optional<Value> get_array(const Teuchos::ParameterEntry& entry, Value (*make)(T)) {
  if (!entry.isType<Teuchos::Array<T>>()) return std::nullopt;
  std::vector<Value> items;
  for (const auto& item : Teuchos::getValue<Teuchos::Array<T>>(entry)) items.push_back(make(item));
  return Value::of_list(std::move(items));
}

}  // namespace

void put(Teuchos::ParameterList& list, const std::string& name, const Value& value) {
  switch (value.kind) {
    case Value::Kind::kFlag:
      list.set(name, value.flag);
      break;
    case Value::Kind::kInteger:
      if (fits_int(value.integer))
        list.set(name, static_cast<int>(value.integer));
      else
        list.set(name, static_cast<long long>(value.integer));
      break;
    case Value::Kind::kNumber:
      list.set(name, value.number);
      break;
    case Value::Kind::kText:
      list.set(name, value.text);
      break;
    case Value::Kind::kList:
      put_list(list, name, value.items);
      break;
    case Value::Kind::kNothing:
    case Value::Kind::kSection:
      list.sublist(name);
      break;
  }
}

Value get(const Teuchos::ParameterEntry& entry) {
  if (entry.isList()) {
    const auto& list = Teuchos::getValue<Teuchos::ParameterList>(entry);
    return list.begin() == list.end() ? Value{} : Value::of_section();
  }
  const auto of_int = [](int i) { return Value::of_integer(i); };
  const auto of_long = [](long long i) { return Value::of_integer(i); };
  if (auto value = get_as<bool>(entry, Value::of_flag)) return *value;
  if (auto value = get_as<int>(entry, of_int)) return *value;
  if (auto value = get_as<long long>(entry, of_long)) return *value;
  if (auto value = get_as<double>(entry, Value::of_number)) return *value;
  if (auto value = get_as<std::string>(entry, Value::of_text)) return *value;
  if (auto value = get_array<int>(entry, of_int)) return *value;
  if (auto value = get_array<long long>(entry, of_long)) return *value;
  if (auto value = get_array<double>(entry, Value::of_number)) return *value;
  if (auto value = get_array<std::string>(entry, Value::of_text)) return *value;
  return Value::of_text(Teuchos::toString(entry.getAny(false)));
}

}  // namespace taper::param::detail
