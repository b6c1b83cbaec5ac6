// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "param/detail/SchemaTree.hpp"
#include "param/detail/YamlScalar.hpp"

namespace taper::param::detail {
namespace {

constexpr std::size_t kWidth = 100;

class YamlWriter {
 public:
  explicit YamlWriter(Which which) : which_(which) {}

  void write_content(const SectionNode& section, std::size_t indent) {
    for (const auto& parameter : section.parameters) write_parameter(*parameter, indent);
    for (const auto& child : section.sections) {
      if (child->given != nullptr && (which_ == Which::kDefaults || !*child->given)) continue;
      if (indent == 0 && !text_.str().empty()) text_ << '\n';
      write_comment(child->doc, indent);
      text_ << std::string(indent, ' ') << format_key(child->name) << ":\n";
      write_content(*child, indent + 2);
    }
  }

  std::string text() const { return text_.str(); }

 private:
  void write_parameter(const ParameterNode& parameter, std::size_t indent) {
    const Binding& binding = *parameter.binding;
    std::string accepted = binding.expects();
    if (const auto limits = binding.limits.describe(); !limits.empty()) accepted += ", " + limits;
    write_comment(parameter.doc + " [" + accepted + "]", indent);
    const Value value = which_ == Which::kDefaults ? parameter.default_value : binding.show();
    text_ << std::string(indent, ' ') << format_key(parameter.name) << ": " << format_value(value)
          << '\n';
  }

  void write_comment(const std::string& doc, std::size_t indent) {
    std::istringstream words(doc);
    std::string line, word;
    const auto write_line = [&] {
      if (!line.empty()) text_ << std::string(indent, ' ') << '#' << line << '\n';
      line.clear();
    };
    while (words >> word) {
      if (indent + line.size() + word.size() + 2 > kWidth) write_line();
      line += ' ' + word;
    }
    write_line();
  }

  Which which_;
  std::ostringstream text_;
};

}  // namespace

std::string write_yaml(const SectionNode& root, Which which) {
  YamlWriter writer(which);
  writer.write_content(root, 0);
  return writer.text();
}

}  // namespace taper::param::detail
