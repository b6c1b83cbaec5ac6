// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace taper::detail {

// One JSON object of a tokenizer file, with what an error message must name: the file and the place
// inside it. Refers to the parsed document, which must outlive it.
class Component {
 public:
  Component(const nlohmann::json& node, std::string file, std::string place)
      : node_(&node), file_(std::move(file)), place_(std::move(place)) {}

  // Empty for JSON null.
  std::string type() const;
  bool is_null() const;
  bool has(std::string_view key) const;  // present and not null

  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  bool flag_or(std::string_view key, bool fallback) const;
  long number(std::string_view key) const;
  // A token id: throws for what is none, or beyond any vocabulary (a broken file, not a reason to
  // allocate). what: "token 'a'".
  int id(const nlohmann::json& value, std::string_view what) const;
  Component child(std::string_view key) const;
  std::vector<Component> children(std::string_view key) const;
  const nlohmann::json& node() const { return *node_; }
  const std::string& file() const { return file_; }
  const std::string& place() const { return place_; }

  // Throws "<file>: <place>: <problem>".
  [[noreturn]] void fail(std::string_view problem) const;
  // Throws for a type outside the list of supported ones.
  [[noreturn]] void fail_unsupported(const std::vector<std::string>& supported) const;

 private:
  const nlohmann::json& at(std::string_view key) const;

  const nlohmann::json* node_;
  std::string file_, place_;
};

// A pattern of Split or Replace, {"String": "..."} or {"Regex": "..."}, as regular expression
// source.
std::string read_pattern(const Component& component);

}  // namespace taper::detail
