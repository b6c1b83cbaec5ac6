// SPDX-License-Identifier: Apache-2.0
#include "text/detail/Component.hpp"

#include <nlohmann/json.hpp>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "text/detail/Regex.hpp"

namespace taper::detail {

bool Component::is_null() const {
  return node_->is_null();
}

std::string Component::type() const {
  return is_null() ? std::string() : text_or("type", "");
}

bool Component::has(std::string_view key) const {
  if (!node_->is_object()) return false;
  const auto found = node_->find(std::string(key));
  return found != node_->end() && !found->is_null();
}

const nlohmann::json& Component::at(std::string_view key) const {
  if (!has(key)) fail("key '" + std::string(key) + "' is missing");
  return node_->at(std::string(key));
}

std::string Component::text(std::string_view key) const {
  const auto& value = at(key);
  if (!value.is_string()) fail("key '" + std::string(key) + "' must be a string");
  return value.get<std::string>();
}

std::string Component::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : std::string(fallback);
}

bool Component::flag_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  const auto& value = at(key);
  if (!value.is_boolean()) fail("key '" + std::string(key) + "' must be true or false");
  return value.get<bool>();
}

long Component::number(std::string_view key) const {
  const auto& value = at(key);
  if (!value.is_number_integer()) fail("key '" + std::string(key) + "' must be an integer");
  return value.get<long>();
}

int Component::id(const nlohmann::json& value, std::string_view what) const {
  constexpr long kMostIds = 1 << 26;
  // Beyond the range of signed numbers the value comes out negative.
  const long number = value.is_number_integer() ? value.get<long>() : -1;
  if (number < 0 || number >= kMostIds)
    fail(std::string(what) + " has no valid id: " + value.dump() + " (a whole number from 0 to " +
         std::to_string(kMostIds - 1) + " expected)");
  return static_cast<int>(number);
}

Component Component::child(std::string_view key) const {
  static const nlohmann::json kNull;
  const auto place = place_.empty() ? std::string(key) : place_ + "." + std::string(key);
  return {has(key) ? at(key) : kNull, file_, place};
}

std::vector<Component> Component::children(std::string_view key) const {
  const auto& list = at(key);
  if (!list.is_array()) fail("key '" + std::string(key) + "' must be a list");
  std::vector<Component> components;
  for (std::size_t i = 0; i < list.size(); ++i)
    components.emplace_back(list[i], file_,
                            place_ + "." + std::string(key) + "[" + std::to_string(i) + "]");
  return components;
}

void Component::fail(std::string_view problem) const {
  TAPER_FAIL(ExitCode::kBadInput,
             file_ << ": " << (place_.empty() ? "top level" : place_) << ": " << problem);
}

void Component::fail_unsupported(const std::vector<std::string>& supported) const {
  const std::string found = type();
  fail((found.empty() ? "component without a type" : "component '" + found + "'") +
       " is not supported here (supported: " + join(supported) +
       "); use a model with a supported tokenizer or give token ids instead of text");
}

std::string read_pattern(const Component& component) {
  const Component pattern = component.child("pattern");
  if (pattern.has("Regex")) return pattern.text("Regex");
  if (pattern.has("String")) return escape_regex(pattern.text("String"));
  component.fail("pattern must be {\"String\": ...} or {\"Regex\": ...}");
}

}  // namespace taper::detail
