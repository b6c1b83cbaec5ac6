// SPDX-License-Identifier: Apache-2.0
#include "param/detail/YamlReader.hpp"

#include <Teuchos_ParameterList.hpp>
#include <stdexcept>
#include <vector>

#include "base/Error.hpp"
#include "param/detail/ListTools.hpp"
#include "param/detail/YamlFlow.hpp"
#include "param/detail/YamlScalar.hpp"

namespace taper::param::detail {
namespace {

std::size_t count_indent(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

std::string_view without_indent(std::string_view line) {
  return line.substr(count_indent(line));
}

bool starts_item(std::string_view content) {
  return content == "-" || content.starts_with("- ");
}

class YamlReader {
 public:
  YamlReader(std::string_view text, const std::string& file, LineMap& lines)
      : file_(file), line_of_(lines) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines_.push_back(line);
      begin = end + 1;
    }
  }

  void read(Teuchos::ParameterList& list) {
    skip_head();
    if (find_content()) read_section(list, "", count_indent(lines_[at_]));
    if (find_content()) fail("is indented less than the first entry of the file");
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { fail_at(at_, reason); }

  [[noreturn]] void fail_at(std::size_t line, const std::string& reason) const {
    const std::string_view shown = line < lines_.size() ? without_indent(lines_[line]) : "";
    TAPER_FAIL(ExitCode::kBadInput, file_ << " line " << line + 1 << ": \"" << shown.substr(0, 60)
                                          << "\" cannot be read as YAML (" << reason << ")");
  }

  // "%YAML 1.1" and "---" before the first entry.
  void skip_head() {
    while (find_content() && (lines_[at_].starts_with('%') || content() == "---")) ++at_;
  }

  std::string_view content() const {
    const std::string_view line = without_indent(lines_[at_]);
    return line.substr(0, length_without_comment(line));
  }

  // Moves on to the next line with content; false at the end of the document.
  bool find_content() {
    for (; at_ < lines_.size(); ++at_) {
      const std::string_view line = lines_[at_];
      if (line == "...") {
        at_ = lines_.size();
        return false;
      }
      if (without_indent(line).starts_with('\t') && !content().empty())
        fail("a tab indents it; YAML allows blanks only");
      if (!content().empty()) return true;
    }
    return false;
  }

  void read_section(Teuchos::ParameterList& list, const std::string& prefix, std::size_t indent) {
    while (find_content() && count_indent(lines_[at_]) >= indent) {
      if (count_indent(lines_[at_]) > indent)
        fail("its indentation fits no section above it; entries of one section line up");
      if (content() == "---") fail("only one document per file is read");
      read_entry(list, prefix, indent);
    }
  }

  void read_entry(Teuchos::ParameterList& list, const std::string& prefix, std::size_t indent) {
    std::string_view rest = content();
    const std::string name = take_name(rest);
    const std::string path = prefix + name;
    if (const auto known = line_of_.find(path); known != line_of_.end())
      fail(path + " appears twice, first on line " + std::to_string(known->second));
    line_of_[path] = static_cast<int>(at_) + 1;
    const std::size_t key_line = at_;
    try {
      if (rest.empty())
        read_below(list, name, path, indent);
      else if (rest.front() == '|' || rest.front() == '>')
        put(list, name, read_block_text(rest, indent));
      else
        read_inline(list, name, path, rest);
    } catch (const std::invalid_argument& problem) {
      fail_at(key_line, problem.what());
    }
  }

  // Cuts `Name:` and the blanks behind it off the front of a line.
  std::string take_name(std::string_view& rest) const {
    if (starts_item(rest)) fail("a list item stands where Name: value is expected");
    std::string name;
    std::size_t at = 0;
    if (rest.front() == '\'' || rest.front() == '"') {
      try {
        name = read_quoted(rest, at);
      } catch (const std::invalid_argument& problem) {
        fail(problem.what());
      }
      if (at >= rest.size() || rest[at] != ':') fail("a : must follow the name");
    } else {
      at = rest.find(": ");
      if (at == rest.npos && rest.ends_with(':')) at = rest.size() - 1;
      if (at == rest.npos)
        fail(rest.find(':') == rest.npos ? "Name: value is expected"
                                         : "a blank must follow the : behind a name");
      name = std::string(rest.substr(0, length_without_comment(rest.substr(0, at))));
    }
    if (name.empty()) fail("the name before the : is missing");
    rest = without_indent(rest.substr(at + 1));
    return name;
  }

  // What stands on the lines below a `Name:` with nothing behind it: a section, a list, or nothing.
  void read_below(Teuchos::ParameterList& list, const std::string& name, const std::string& path,
                  std::size_t indent) {
    ++at_;
    if (!find_content()) {
      put(list, name, Value{});
      return;
    }
    const std::size_t below = count_indent(lines_[at_]);
    if (below >= indent && starts_item(content()))
      put(list, name, read_items(below));
    else if (below > indent)
      read_section(list.sublist(name), path + "/", below);
    else
      put(list, name, Value{});
  }

  Value read_items(std::size_t indent) {
    std::vector<Value> items;
    while (find_content() && count_indent(lines_[at_]) == indent && starts_item(content())) {
      const std::string_view item = without_indent(content().substr(1));
      if (item.empty()) fail("a list item is empty");
      if (item.front() == '[' || item.front() == '{' || item.front() == '|' || item.front() == '>')
        fail("a list may hold numbers and one-line texts only");
      try {
        items.push_back(read_scalar(item));
      } catch (const std::invalid_argument& problem) {
        fail(problem.what());
      }
      ++at_;
    }
    return Value::of_list(std::move(items));
  }

  void read_inline(Teuchos::ParameterList& list, const std::string& name, const std::string& path,
                   std::string_view rest) {
    if (rest.front() == '[') {
      put(list, name, read_flow_list(take_flow(rest)));
    } else if (rest.front() == '{') {
      const int line = static_cast<int>(at_) + 1;
      read_flow_map(take_flow(rest), list.sublist(name),
                    [&](const std::string& below) { line_of_[path + "/" + below] = line; });
    } else {
      put(list, name, read_scalar(rest));
      ++at_;
    }
  }

  // The text of brackets that may go on over several lines.
  std::string take_flow(std::string_view rest) {
    std::string text(rest);
    int open = count_open_brackets(text);
    for (++at_; open > 0 && at_ < lines_.size(); ++at_) {
      text += ' ';
      text += content();
      open += count_open_brackets(content());
    }
    if (open != 0) throw std::invalid_argument("its brackets do not match");
    return text;
  }

  static Value read_scalar(std::string_view text) {
    if (text.front() == '\'' || text.front() == '"') {
      std::size_t at = 0;
      Value value = Value::of_text(read_quoted(text, at));
      if (at != text.size())
        throw std::invalid_argument("nothing but a comment may follow quoted text");
      return value;
    }
    if (std::string_view("&*!@`%|>?,]}").find(text.front()) != text.npos)
      throw std::invalid_argument("text that starts with " + std::string(1, text.front()) +
                                  " needs quotes");
    if (text.find(": ") != text.npos || text.ends_with(':'))
      throw std::invalid_argument("text with a : inside needs quotes");
    return infer_scalar(std::string(text));
  }

  // Texts after | keep their line ends, texts after > join their lines; a - behind it drops the
  // last line end. The least indented line gives the margin.
  Value read_block_text(std::string_view header, std::size_t indent) {
    const bool folded = header.front() == '>';
    const std::string_view mode = header.substr(1);
    if (!mode.empty() && mode != "-")
      throw std::invalid_argument("after | and > only - is understood");
    std::vector<std::string_view> body;
    for (++at_; at_ < lines_.size(); ++at_) {
      const bool blank = count_indent(lines_[at_]) == lines_[at_].size();
      if (!blank && count_indent(lines_[at_]) <= indent) break;
      body.push_back(lines_[at_]);
    }
    while (!body.empty() && count_indent(body.back()) == body.back().size()) body.pop_back();
    std::size_t margin = std::string_view::npos;
    for (const auto line : body) {
      if (count_indent(line) < line.size()) margin = std::min(margin, count_indent(line));
    }
    std::string text;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const std::string_view line = body[i].substr(std::min(margin, body[i].size()));
      if (i > 0) text += !folded ? "\n" : line.empty() ? "\n" : text.ends_with('\n') ? "" : " ";
      text += line;
    }
    if (mode.empty() && !text.empty()) text += '\n';
    return Value::of_text(std::move(text));
  }

  const std::string& file_;
  LineMap& line_of_;
  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
};

}  // namespace

void read_yaml(std::string_view text, const std::string& file, Teuchos::ParameterList& list,
               LineMap& lines) {
  YamlReader(text, file, lines).read(list);
}

}  // namespace taper::param::detail
