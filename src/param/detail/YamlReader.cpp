// SPDX-License-Identifier: Apache-2.0
#include "param/detail/YamlReader.hpp"

#include <yaml-cpp/yaml.h>

#include <Teuchos_ParameterList.hpp>
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "base/Error.hpp"
#include "param/detail/ListTools.hpp"

namespace taper::param::detail {
namespace {

constexpr int kDeepest = 64;

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

// Our own findings travel as yaml-cpp's do, up to where file and line are known.
[[noreturn]] void fail(const YAML::Node& at, const std::string& reason) {
  throw YAML::ParserException(at.Mark(), reason);
}

std::vector<YAML::Node> load(std::string_view text) {
  // A comment as the last line, because yaml-cpp accepts an open quote in a file that ends with a
  // line end, and leaves the last line end of a block away in a file that ends without one.
  return YAML::LoadAll(std::string(text) + "\n#");
}

void refuse_tag(const YAML::Node& node) {
  const std::string& tag = node.Tag();  // "?": none, "!": quoted
  if (!tag.empty() && tag != "?" && tag != "!") fail(node, "text that starts with ! needs quotes");
}

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
    text_ = text;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines_.push_back(line);
      begin = end + 1;
    }
  }

  void read(Teuchos::ParameterList& list, LineMap& lines) const {
    const auto documents = load(text_);
    if (documents.empty()) return;
    if (!documents[0].IsMap() && !documents[0].IsNull())
      fail(documents[0], "expected 'Name: value', with a space after the colon");
    if (documents.size() > 1)
      fail(documents[1],
           "a second document begins here; a file contains one document, and its top-level entries "
           "have the same indentation");
    if (documents[0].IsMap()) read_section(documents[0], "", list, lines, 0);
  }

  Value read_only_value() const {
    const auto documents = load(text_);
    if (documents.size() != 1 || documents[0].IsMap())
      throw std::invalid_argument("one value is expected, and nothing after it");
    return read_value(documents[0]);
  }

  std::string describe(const std::string& file, const YAML::Exception& problem) const {
    // yaml-cpp misses a closing bracket or quote at the end of the file, below what is shown.
    std::size_t line = std::min<std::size_t>(std::max(problem.mark.line, 0), lines_.size() - 1);
    while (line > 0 && without_indent(lines_[line]).empty()) --line;
    const std::string_view shown = without_indent(lines_[line]);
    std::string text = file + " line " + std::to_string(line + 1) + ": \"" +
                       std::string(shown.substr(0, 60)) + "\" cannot be read as YAML (" +
                       problem.msg;
    if (shown.starts_with('\t')) text += "; it is indented with a tab, but YAML allows only spaces";
    return text + ")";
  }

 private:
  void read_section(const YAML::Node& section, const std::string& prefix,
                    Teuchos::ParameterList& list, LineMap& lines, int depth) const {
    refuse_tag(section);
    if (depth == kDeepest) fail(section, "sections are nested too deep; does one contain itself?");
    for (const auto& entry : section) {
      if (!entry.first.IsScalar() || entry.first.Scalar().empty())
        fail(entry.first, "a name is expected before the :");
      const std::string& name = entry.first.Scalar();
      const std::string path = prefix + name;
      const auto [known, is_new] = lines.try_emplace(path, entry.first.Mark().line + 1);
      if (!is_new)
        fail(entry.first, path + " appears twice, first on line " + std::to_string(known->second));
      if (entry.second.IsMap())
        read_section(entry.second, path + "/", list.sublist(name), lines, depth + 1);
      else
        put(list, name, read_value(entry.second));
    }
  }

  Value read_value(const YAML::Node& node) const {
    if (!node.IsSequence()) return read_scalar(node);
    refuse_tag(node);
    std::vector<Value> items;
    for (const auto& item : node) {
      if (item.IsSequence() || item.IsMap())
        fail(item, "a list may hold numbers and texts only, no further lists or sections");
      items.push_back(read_scalar(item));
      if (items.back().kind == Value::Kind::kNothing) fail(item, "a list item is empty");
    }
    return Value::of_list(std::move(items));
  }

  Value read_scalar(const YAML::Node& node) const {
    refuse_tag(node);
    if (node.IsNull()) return read_null(node.Mark());
    return node.Tag() == "!" ? Value::of_text(node.Scalar()) : infer_scalar(node.Scalar());
  }

  // null and ~ are texts, which some lists take for none. yaml-cpp does not tell them from a name
  // with nothing after it; the place of that is what comes next.
  Value read_null(const YAML::Mark& at) const {
    if (static_cast<std::size_t>(at.line) >= lines_.size()) return Value{};
    const std::string_view line = lines_[at.line];
    const std::string_view rest = line.substr(std::min<std::size_t>(at.column, line.size()));
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t,]}"));
    for (const char* spelling : {"~", "null", "Null", "NULL"}) {
      if (word == spelling) return Value::of_text(spelling);
    }
    return Value{};
  }

  std::string_view text_;
  std::vector<std::string_view> lines_;
};

}  // namespace

void read_yaml(std::string_view text, const std::string& file, Teuchos::ParameterList& list,
               LineMap& lines) {
  const YamlReader reader(text);
  try {
    reader.read(list, lines);
  } catch (const YAML::Exception& problem) {
    TAPER_FAIL(ExitCode::kBadInput, reader.describe(file, problem));
  }
}

Value read_yaml_value(std::string_view text) {
  try {
    return YamlReader(text).read_only_value();
  } catch (const YAML::Exception& problem) {
    throw std::invalid_argument(problem.msg);
  }
}

}  // namespace taper::param::detail
