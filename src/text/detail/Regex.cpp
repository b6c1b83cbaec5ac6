// SPDX-License-Identifier: Apache-2.0
#include "text/detail/Regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cctype>

#include "base/Error.hpp"

namespace taper::detail {
namespace {

// Bodies of character classes. PCRE2's own \s has U+180E in it, and its \w changed between
// versions.
constexpr std::string_view kSpace =
    "\\t-\\r "
    "\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view kNotSpace =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{"
    "200b}-\\x{2027}"
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
// Letters, marks, decimal and letter numbers, connectors, the symbols that count as alphabetic,
// and, as Oniguruma has it, the superscripts and fractions of Latin-1.
constexpr std::string_view kWord =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}\\x{24b6}-\\x{24e9}\\x{"
    "1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}"
    "\\x{1f170}-\\x{1f189}";

// Walks over an Oniguruma pattern and writes the PCRE2 one.
class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (i_ < in_.size()) step();
    return out_;
  }

 private:
  void step() {
    const char c = in_[i_];
    if (c == '\\') return escape();
    if (in_class_) {
      if (c == '[') refuse("a set inside a set");
      if (in_.substr(i_, 2) == "&&") refuse("the intersection &&");
      if (c == ']') in_class_ = false;
    } else if (c == '[') {
      in_class_ = true;
      out_ += c;
      ++i_;
      if (i_ < in_.size() && in_[i_] == '^') out_ += in_[i_++];
      return;
    } else if (c == '}' && i_ + 1 < in_.size() && in_[i_ + 1] == '+') {
      refuse("the quantifier {n,m}+");
    }
    out_ += c;
    ++i_;
  }

  void put_class(std::string_view body, bool negated = false) {
    if (in_class_ && negated) refuse("a negated shorthand inside a set");
    if (in_class_)
      out_ += body;
    else
      (out_ += negated ? "[^" : "[").append(body) += ']';
  }

  void escape() {
    if (i_ + 1 >= in_.size()) refuse("a backslash at the end");
    const char c = in_[i_ + 1];
    i_ += 2;
    switch (c) {
      case 's':
        return put_class(kSpace);
      case 'S':
        return put_class(kNotSpace);
      case 'w':
        return put_class(kWord);
      case 'W':
        return put_class(kWord, true);
      case 'h':
        return put_class("0-9a-fA-F");
      case 'v':
        out_ += "\\x{b}";
        return;
      case 'p':
      case 'P':
        return property(c);
      case 'd':
      case 'D':
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'e':
      case 'a':
      case 'x':
      case 'b':
      case 'B':
      case 'A':
      case 'z':
      case 'Z':
        break;
      default:
        if (std::isalnum(static_cast<unsigned char>(c))) refuse(std::string("the escape \\") + c);
    }
    (out_ += '\\') += c;
  }

  // Only general categories: a script name would mean script extensions to some versions of PCRE2.
  void property(char letter) {
    const auto close = in_.find('}', i_);
    if (i_ >= in_.size() || in_[i_] != '{' || close == std::string_view::npos)
      refuse("a property without braces");
    const std::string_view name = in_.substr(i_ + 1, close - i_ - 1);
    const std::string_view category = name.substr(name.starts_with('^') ? 1 : 0);
    const bool known = (category.size() == 1 || category.size() == 2) &&
                       std::string_view("LMNPSZC").find(category[0]) != std::string_view::npos;
    if (!known) refuse("the property " + std::string(name));
    ((out_ += '\\') += letter).append(in_.substr(i_, close + 1 - i_));
    i_ = close + 1;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    TAPER_FAIL(ExitCode::kBadInput,
               where_ << ": " << what << " in the regular expression '" << in_
                      << "' is not supported (its meaning could differ from the original's)");
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  std::size_t i_ = 0;
  bool in_class_ = false;
};

std::string error_text(int code) {
  PCRE2_UCHAR text[160];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

std::string escape_regex(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool plain = static_cast<unsigned char>(c) >= 0x80 ||
                       std::isalnum(static_cast<unsigned char>(c)) || c == ' ' ||
                       std::iscntrl(static_cast<unsigned char>(c));
    if (!plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::string translate_regex(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

Regex::Regex(std::string_view pattern, std::string where) : where_(std::move(where)) {
  const std::string translated = translate_regex(pattern, where_);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // ^ and $ are line anchors in Ruby syntax.
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &offset, nullptr);
  TAPER_VALIDATE(code != nullptr, where_ << ": the regular expression '" << pattern
                                         << "' is not valid (" << error_text(error)
                                         << " near character " << offset << ")");
  code_ = std::shared_ptr<const void>(
      code, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
  // Without just-in-time code (not built in, or no executable memory) the interpreter gives the
  // same matches.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

std::vector<Span> Regex::find_all(std::string_view text) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> data(
      pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::vector<Span> spans;
  std::size_t from = 0;
  while (from <= text.size()) {
    int found =
        pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          data.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    TAPER_VALIDATE(found >= 0, where_ << ": matching the regular expression failed ("
                                      << error_text(found) << ") in a text of " << text.size()
                                      << " bytes; shorten the text");
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    spans.push_back({ends[0], ends[1]});
    from = ends[1];
    if (ends[0] == ends[1]) {  // an empty match: go on behind the next character
      do ++from;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80);
    }
  }
  return spans;
}

std::string Regex::replace_all(std::string_view text, std::string_view content) const {
  std::string replaced;
  std::size_t done = 0;
  for (const Span span : find_all(text)) {
    replaced.append(text, done, span.begin - done).append(content);
    done = span.end;
  }
  return replaced.append(text, done);
}

}  // namespace taper::detail
