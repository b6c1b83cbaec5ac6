// SPDX-License-Identifier: Apache-2.0
#include "param/detail/YamlFlow.hpp"

#include <Teuchos_ParameterList.hpp>
#include <stdexcept>

#include "param/detail/ListTools.hpp"
#include "param/detail/YamlScalar.hpp"

namespace taper::param::detail {
namespace {

class FlowReader {
 public:
  FlowReader(std::string_view text, const std::function<void(const std::string&)>& found)
      : text_(text), found_(found) {}

  Value read_list() {
    std::vector<Value> items;
    ++at_;
    while (!take(']')) {
      if (peek() == '[' || peek() == '{')
        fail("a list may hold numbers and texts only, no further lists or sections");
      items.push_back(read_scalar());
      if (!take(',') && peek() != ']') fail("a list needs , between items and ] at its end");
    }
    return Value::of_list(std::move(items));
  }

  void read_map(Teuchos::ParameterList& list, const std::string& prefix) {
    ++at_;
    while (!take('}')) {
      const std::string name = read_name();
      const std::string path = prefix + name;
      if (list.isParameter(name)) fail(path + " appears twice");
      if (found_) found_(path);
      if (peek() == '{')
        read_map(list.sublist(name), path + "/");
      else if (peek() == '[')
        put(list, name, read_list());
      else
        put(list, name, read_scalar());
      if (!take(',') && peek() != '}') fail("{...} needs , between entries and } at its end");
    }
  }

  void expect_end() {
    if (peek() != '\0') fail("nothing may follow the closing bracket");
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw std::invalid_argument(reason); }

  // The next character that is no blank, \0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  Value read_scalar() {
    if (peek() == '\'' || peek() == '"') return Value::of_text(read_quoted(text_, at_));
    const std::string word = read_until(",]}");
    if (word.empty()) fail("a value is missing between the brackets");
    return infer_scalar(word);
  }

  std::string read_name() {
    const bool quoted = peek() == '\'' || peek() == '"';
    const std::string name = quoted ? read_quoted(text_, at_) : read_until(":,]}");
    if (name.empty() || !take(':')) fail("{...} holds entries like {Name: value}");
    return name;
  }

  std::string read_until(std::string_view ends) {
    const std::size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    std::string word(text_.substr(at_, end - at_));
    at_ = end;
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.pop_back();
    return word;
  }

  std::string_view text_;
  const std::function<void(const std::string&)>& found_;
  std::size_t at_ = 0;
};

}  // namespace

int count_open_brackets(std::string_view line) {
  int open = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = '\0';
    } else if ((c == '\'' || c == '"') &&
               (i == 0 || std::string_view(" \t[{,:").find(line[i - 1]) != line.npos)) {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++open;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return open;
}

Value read_flow_list(std::string_view text) {
  const std::function<void(const std::string&)> nobody;
  FlowReader reader(text, nobody);
  Value value = reader.read_list();
  reader.expect_end();
  return value;
}

void read_flow_map(std::string_view text, Teuchos::ParameterList& list,
                   const std::function<void(const std::string& path)>& found) {
  FlowReader reader(text, found);
  reader.read_map(list, "");
  reader.expect_end();
}

}  // namespace taper::param::detail
