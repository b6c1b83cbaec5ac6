// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <cstdlib>
#include <map>

#include "gpuemu/ptx/Ptx.hpp"

namespace taper::gpuemu {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != separator || depth > 0) continue;
    parts.emplace_back(trimmed(text.substr(start, i - start)));
    start = i + 1;
  }
  const std::string_view last = trimmed(text.substr(start));
  if (!last.empty() || !parts.empty()) parts.emplace_back(last);
  return parts;
}

bool read_type(std::string_view word, Type& type) {
  static const std::map<std::string_view, Type> types{
      {"pred", {'p', 1}}, {"b8", {'b', 8}},     {"b16", {'b', 16}},    {"b32", {'b', 32}},
      {"b64", {'b', 64}}, {"b128", {'b', 128}}, {"u8", {'u', 8}},      {"u16", {'u', 16}},
      {"u32", {'u', 32}}, {"u64", {'u', 64}},   {"s8", {'s', 8}},      {"s16", {'s', 16}},
      {"s32", {'s', 32}}, {"s64", {'s', 64}},   {"f16", {'x', 16}},    {"f32", {'f', 32}},
      {"f64", {'f', 64}}, {"bf16", {'h', 16}},  {"bf16x2", {'x', 32}}, {"f16x2", {'x', 32}}};
  const auto found = types.find(word);
  if (found == types.end()) return false;
  type = found->second;
  return true;
}

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(without_comments(text)) {}

  PtxModule module() {
    PtxModule m;
    while (skip_space(), at_ < text_.size()) {
      const std::string head = until(";{", false);
      const std::vector<std::string> words = split_words(head);
      if (words.empty()) fail("a directive was expected");
      if (contains(words, ".entry") || contains(words, ".func")) {
        function(head, m);
      } else if (words[0] == ".version" || words[0] == ".target" || words[0] == ".address_size" ||
                 words[0] == ".file") {
        line_end();
      } else if (words[0] == ".section") {
        until("}", true);
      } else {
        m.variables.push_back(variable(until(";", true)));
      }
    }
    return m;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Fault("PTX, line " + std::to_string(line_) + ": " + what);
  }

  // Comments become spaces, so that lines keep their numbers.
  static std::string without_comments(std::string_view text) {
    std::string out(text);
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
      if (out[i] == '"') {
        i = out.find('"', i + 1);
        if (i == std::string::npos) break;
      } else if (out[i] == '/' && out[i + 1] == '/') {
        while (i < out.size() && out[i] != '\n') out[i++] = ' ';
      } else if (out[i] == '/' && out[i + 1] == '*') {
        while (i + 1 < out.size() && !(out[i] == '*' && out[i + 1] == '/')) {
          if (out[i] != '\n') out[i] = ' ';
          ++i;
        }
        out[i] = out[i + 1] = ' ';
      }
    }
    return out;
  }

  static bool contains(const std::vector<std::string>& words, std::string_view word) {
    for (const std::string& w : words) {
      if (w == word) return true;
    }
    return false;
  }

  static std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> words;
    std::size_t i = 0;
    while (i < text.size()) {
      while (i < text.size() && std::isspace(static_cast<unsigned char>(text[i]))) ++i;
      std::size_t start = i;
      while (i < text.size() && !std::isspace(static_cast<unsigned char>(text[i]))) ++i;
      if (i > start) words.emplace_back(text.substr(start, i - start));
    }
    return words;
  }

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) advance();
  }
  void advance() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void line_end() {
    while (at_ < text_.size() && text_[at_] != '\n') advance();
  }

  // The text up to one of the characters `ends`; `take` also moves past it.
  std::string until(std::string_view ends, bool take) {
    const std::size_t start = at_;
    std::size_t i = at_;
    bool is_quoted = false;
    for (; i < text_.size(); ++i) {
      if (text_[i] == '"') is_quoted = !is_quoted;
      if (!is_quoted && ends.find(text_[i]) != std::string_view::npos) break;
    }
    if (i == text_.size() && take) fail("the text ends within a statement");
    if (take) {
      while (at_ <= i) advance();
    }
    return text_.substr(start, i - start);
  }

  // A declaration without its semicolon. Attributes in any order come before type and name.
  Variable variable(std::string_view text) const {
    static const std::map<std::string_view, Space> spaces{{".global", Space::kGlobal},
                                                          {".const", Space::kConst},
                                                          {".shared", Space::kShared},
                                                          {".local", Space::kLocal},
                                                          {".param", Space::kParam}};
    Variable v;
    const std::size_t equals = text.find('=');
    std::string_view head = trimmed(text.substr(0, equals));
    if (equals != std::string_view::npos) {
      std::string_view values = trimmed(text.substr(equals + 1));
      if (!values.empty() && values[0] == '{') values = values.substr(1, values.size() - 2);
      v.initial = split(values, ',');
    }
    std::string flat;
    for (char c : head) {
      if (c == '[') flat += ' ';
      flat += c;
    }
    const std::vector<std::string> words = split_words(flat);
    std::int64_t count = 1;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& w = words[i];
      if (const auto s = spaces.find(w); s != spaces.end()) {
        v.space = s->second;
      } else if (w == ".align") {
        v.align = std::atoi(words.at(++i).c_str());
      } else if (w == ".ptr") {
        if (i + 1 < words.size() && spaces.count(words[i + 1]) != 0) ++i;
      } else if (w[0] == '[') {
        v.is_open = w == "[]";
        count *= v.is_open ? 0 : std::strtoll(w.c_str() + 1, nullptr, 0);
      } else if (w[0] == '.') {
        read_type(std::string_view(w).substr(1), v.type);
      } else {
        v.name = w;
      }
    }
    if (v.name.empty()) fail("a declaration without a name: " + std::string(head));
    v.bytes = count * v.type.bytes();
    v.align = std::max(v.align, v.type.bytes());
    return v;
  }

  void function(const std::string& head, PtxModule& m) {
    Function f;
    f.is_entry = head.find(".entry") != std::string::npos;
    std::size_t i = head.find(f.is_entry ? ".entry" : ".func") + (f.is_entry ? 6 : 5);
    const auto variables_in = [&](std::vector<Variable>& into) {
      const std::size_t end = head.find(')', i);
      for (const std::string& p : split(std::string_view(head).substr(i + 1, end - i - 1), ',')) {
        if (!p.empty()) into.push_back(variable(p));
      }
      i = end + 1;
    };
    const auto skip = [&] {
      while (i < head.size() && std::isspace(static_cast<unsigned char>(head[i]))) ++i;
    };
    skip();
    if (i < head.size() && head[i] == '(') variables_in(f.results);
    skip();
    while (i < head.size() && !std::isspace(static_cast<unsigned char>(head[i])) &&
           head[i] != '(') {
      f.name += head[i++];
    }
    skip();
    if (i < head.size() && head[i] == '(') variables_in(f.parameters);
    const std::string passed = until(";{", true);
    const bool is_declared_only = text_[at_ - 1] == ';';
    if (is_declared_only) return;
    body(f);
    m.functions.push_back(std::move(f));
  }

  void body(Function& f) {
    int depth = 1;
    while (depth > 0) {
      skip_space();
      if (at_ >= text_.size()) fail("function " + f.name + " does not end");
      Statement s;
      s.line = line_;
      if (text_[at_] == '{' || text_[at_] == '}') {
        depth += text_[at_] == '{' ? 1 : -1;
        s.kind = text_[at_] == '{' ? Statement::Kind::kOpen : Statement::Kind::kClose;
        advance();
        if (depth > 0) f.body.push_back(std::move(s));
        continue;
      }
      if (is_label()) {
        s.name = std::string(trimmed(until(":", true)));
        s.kind = Statement::Kind::kLabel;
        skip_space();
        if (text_.compare(at_, 14, ".branchtargets") == 0) {
          s.kind = Statement::Kind::kTargets;
          s.operands = split(until(";", true).substr(14), ',');
        } else if (text_.compare(at_, 14, ".callprototype") == 0) {
          until(";", true);
          continue;
        }
        f.body.push_back(std::move(s));
        continue;
      }
      const std::string text(trimmed(until(";", true)));
      if (text.empty()) continue;
      if (text[0] == '.') {
        if (directive(text, s)) f.body.push_back(std::move(s));
      } else {
        instruction(text, s);
        f.body.push_back(std::move(s));
      }
    }
  }

  bool is_label() const {
    std::size_t i = at_;
    const auto is_name = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
    };
    while (i < text_.size() && is_name(text_[i])) ++i;
    return i > at_ && i + 1 < text_.size() && text_[i] == ':' && text_[i + 1] != ':';
  }

  bool directive(const std::string& text, Statement& s) const {
    const std::vector<std::string> words = split_words(text);
    if (words[0] == ".reg") {
      s.kind = Statement::Kind::kRegisters;
      if (!read_type(std::string_view(words.at(1)).substr(1), s.type))
        fail("registers of type " + words[1]);
      s.operands = split(std::string_view(text).substr(text.find(words[1]) + words[1].size()), ',');
      return true;
    }
    if (words[0] == ".shared" || words[0] == ".local" || words[0] == ".param" ||
        words[0] == ".global") {
      s.kind = Statement::Kind::kVariable;
      s.variable = variable(text);
      return true;
    }
    if (words[0] == ".pragma" || words[0] == ".loc" || words[0].rfind(".max", 0) == 0 ||
        words[0].rfind(".min", 0) == 0 || words[0].rfind(".req", 0) == 0) {
      return false;
    }
    fail("unknown directive " + text);
  }

  void instruction(const std::string& text, Statement& s) const {
    s.text = text;
    for (char& c : s.text) {
      if (std::isspace(static_cast<unsigned char>(c))) c = ' ';
    }
    std::string_view rest = s.text;
    if (rest[0] == '@') {
      s.is_guard_negated = rest[1] == '!';
      const std::size_t end = rest.find(' ');
      s.guard = rest.substr(s.is_guard_negated ? 2 : 1, end - (s.is_guard_negated ? 2 : 1));
      rest = trimmed(rest.substr(end));
    }
    const std::size_t end = rest.find_first_of(" ({[");
    s.opcode = split(rest.substr(0, end), '.');
    if (end != std::string_view::npos) s.operands = split(rest.substr(end), ',');
  }

  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

PtxModule parse_ptx(std::string_view text) {
  return Parser(text).module();
}

}  // namespace taper::gpuemu
