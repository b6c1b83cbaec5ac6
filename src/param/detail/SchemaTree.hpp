// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "param/detail/Binding.hpp"

namespace taper::param::detail {

struct ParameterNode {
  std::string name;
  std::string path;
  std::string doc;
  std::unique_ptr<Binding> binding;
  Value default_value;
};

struct SectionNode {
  std::string name;
  std::string path;  // empty for the top level
  std::string doc;
  std::vector<std::unique_ptr<ParameterNode>> parameters;  // in order of description
  std::vector<std::unique_ptr<SectionNode>> sections;
  std::vector<std::function<std::vector<std::string>()>> checks;
  // Describes one of the sections in this one whose names are the user's; null: there are none.
  std::function<void(SectionNode&)> describe_item;

  std::string path_of(const std::string& child) const {
    return path.empty() ? child : path + "/" + child;
  }
  ParameterNode* find_parameter(const std::string& wanted) const;
  SectionNode* find_section(const std::string& wanted) const;
  std::vector<std::string> names() const;  // of parameters, then of sections
  SectionNode& add_section(const std::string& child);
};

enum class Which { kDefaults, kCurrent };

// The tree as a commented run file.
std::string write_yaml(const SectionNode& root, Which which);

}  // namespace taper::param::detail
