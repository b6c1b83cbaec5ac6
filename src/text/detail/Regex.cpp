// SPDX-License-Identifier: Apache-2.0
#include "text/detail/Regex.hpp"

#include <oniguruma.h>

#include <utility>

#include "base/Error.hpp"
#include "base/Utf8.hpp"

namespace taper::detail {
namespace {

const OnigUChar* bytes(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.data());
}

// info: what a pattern has wrong, of errors of onig_new().
std::string error_text(int code, OnigErrorInfo* info = nullptr) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int size = onig_error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
}

// Once, before the first pattern: the library itself does not guard it against other threads.
void initialize_library() {
  static const int code = [] {
    OnigEncoding used[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(used, 1);
  }();
  TAPER_VALIDATE(code == ONIG_NORMAL, "Oniguruma cannot be started (" << error_text(code) << ")");
}

}  // namespace

std::string escape_regex(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("\\.+*?()|[]{}^$#&-~").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Regex::Regex(std::string_view pattern, std::string where) : where_(std::move(where)) {
  initialize_library();
  OnigRegex code = nullptr;
  OnigErrorInfo info{};
  const int error = onig_new(&code, bytes(pattern), bytes(pattern) + pattern.size(),
                             ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, &info);
  TAPER_VALIDATE(error == ONIG_NORMAL, where_ << ": the regular expression '" << pattern
                                              << "' is not valid (" << error_text(error, &info)
                                              << ")");
  code_ = std::shared_ptr<void>(code, [](void* p) { onig_free(static_cast<OnigRegex>(p)); });
}

std::vector<Span> Regex::find_all(std::string_view text) const {
  std::vector<Span> spans;
  if (text.empty()) return spans;  // Hugging Face does not search it
  const std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(
      onig_region_new(), [](OnigRegion* r) { onig_region_free(r, 1); });
  const OnigUChar *begin = bytes(text), *end = begin + text.size();
  for (std::size_t from = 0; from <= text.size();) {
    const int found = onig_search(static_cast<OnigRegex>(code_.get()), begin, end, begin + from,
                                  end, region.get(), ONIG_OPTION_NONE);
    if (found == ONIG_MISMATCH) break;
    TAPER_VALIDATE(found >= 0, where_ << ": matching the regular expression failed ("
                                      << error_text(found) << ") in a text of " << text.size()
                                      << " bytes; shorten the text");
    const Span span{static_cast<std::size_t>(region->beg[0]),
                    static_cast<std::size_t>(region->end[0])};
    if (span.begin == span.end && !spans.empty() && spans.back().end == span.end) {
      // Nothing right after the last match: look after the next character.
      from += from < text.size() ? read_utf8(text, from).bytes : 1;
      continue;
    }
    spans.push_back(span);
    from = span.end;
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
