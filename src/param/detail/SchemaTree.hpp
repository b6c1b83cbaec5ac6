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
  // Describes a section that the file has named; empty if only what is described may be there.
  using DescribeEntry = std::function<void(SectionNode& entry,
                                           const std::function<std::string(const std::string&)>&)>;

  std::string name;
  std::string path;  // empty for the top level
  std::string doc;
  std::vector<std::unique_ptr<ParameterNode>> parameters;  // in order of description
  std::vector<std::unique_ptr<SectionNode>> sections;
  std::vector<std::function<std::vector<std::string>()>> checks;
  DescribeEntry describe_entry;
  bool* given = nullptr;  // whether the file has an optional section; null for all others

  std::string path_of(const std::string& child) const {
    return path.empty() ? child : path + "/" + child;
  }
  ParameterNode* find_parameter(const std::string& wanted) const;
  SectionNode* find_section(const std::string& wanted) const;
  SectionNode& add_section(const std::string& wanted);
  std::vector<std::string> names() const;  // of parameters, then of sections
};

enum class Which { kDefaults, kCurrent };

// The tree as a commented run file.
std::string write_yaml(const SectionNode& root, Which which);

}  // namespace taper::param::detail
