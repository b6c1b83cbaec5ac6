// SPDX-License-Identifier: Apache-2.0
#include "text/detail/Normalizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "base/Utf8.hpp"
#include "text/detail/Regex.hpp"

namespace taper::detail {
namespace {

// Characters with a combining class or a composition that were assigned after Unicode 9. The
// library behind Hugging Face's tokenizers knows Unicode 9 only, so that its normal forms leave
// them where they are; so do ours.
constexpr std::pair<char32_t, char32_t> kYoungerThanUnicode9[] = {
    {0x7FD, 0x7FD},     {0x897, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x1715, 0x1715},   {0x1ABF, 0x1AEB},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
    {0x105C0, 0x105FF}, {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC},
    {0x10EFA, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x11380, 0x113FF}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11900, 0x1195F}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42},
    {0x16100, 0x1613F}, {0x16D40, 0x16D7F}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1E5EE, 0x1E5EF}};

bool is_younger_than_unicode9(char32_t c) {
  const auto* above =
      std::upper_bound(std::begin(kYoungerThanUnicode9), std::end(kYoungerThanUnicode9), c,
                       [](char32_t value, const auto& range) { return value < range.first; });
  return above != std::begin(kYoungerThanUnicode9) && c <= (above - 1)->second;
}

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

// Canonical order: runs of characters with a combining class are sorted by it. (utf8proc_map does
// this by exchanging neighbors, which takes forever on long runs.)
void order_marks(std::vector<utf8proc_int32_t>& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    auto end = begin;
    while (end != text.end() && combining_class(*end) != 0) ++end;
    std::stable_sort(begin, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end == text.end() ? end : end + 1;
  }
}

void append_normal_form(std::string& out, std::string_view text, int options) {
  const auto flags = static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE);
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = read_utf8(text, i);
    utf8proc_int32_t parts[32];  // the longest decomposition has 18
    int boundary_class = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c.value), parts, std::size(parts),
        static_cast<utf8proc_option_t>(flags | UTF8PROC_DECOMPOSE), &boundary_class);
    TAPER_VALIDATE(count >= 0 && count <= static_cast<long>(std::size(parts)),
                   "character U+" << std::hex << static_cast<std::uint32_t>(c.value)
                                  << " has no Unicode normal form");
    points.insert(points.end(), parts, parts + count);
    i += c.bytes;
  }
  order_marks(points);
  auto size = static_cast<utf8proc_ssize_t>(points.size());
  if (options & UTF8PROC_COMPOSE) size = utf8proc_normalize_utf32(points.data(), size, flags);
  for (utf8proc_ssize_t i = 0; i < size; ++i) append_utf8(out, static_cast<char32_t>(points[i]));
}

// Unicode normal forms by utf8proc.
std::string to_normal_form(std::string text, int options) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), ascii)) return text;  // every form of ASCII is itself
  const std::string_view view = text;
  std::string out;
  std::size_t done = 0;
  for (std::size_t i = 0; i < view.size();) {
    const CodePoint c = read_utf8(view, i);
    if (is_younger_than_unicode9(c.value)) {
      if (done < i) append_normal_form(out, view.substr(done, i - done), options);
      append_utf8(out, c.value);
      done = i + c.bytes;
    }
    i += c.bytes;
  }
  if (done < view.size()) append_normal_form(out, view.substr(done), options);
  return out;
}

}  // namespace

void Normalizer::add(const Component& component) {
  if (component.is_null()) return;
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const auto& child : component.children("normalizers")) add(child);
  } else if (type == "NFC") {
    steps_.emplace_back(
        [](std::string t) { return to_normal_form(std::move(t), UTF8PROC_COMPOSE); });
  } else if (type == "NFD") {
    steps_.emplace_back(
        [](std::string t) { return to_normal_form(std::move(t), UTF8PROC_DECOMPOSE); });
  } else if (type == "NFKC") {
    steps_.emplace_back([](std::string t) {
      return to_normal_form(std::move(t), UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    });
  } else if (type == "NFKD") {
    steps_.emplace_back([](std::string t) {
      return to_normal_form(std::move(t), UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    });
  } else if (type == "Prepend") {
    steps_.emplace_back(
        [prefix = component.text("prepend")](std::string t) { return t.empty() ? t : prefix + t; });
  } else if (type == "Replace") {
    steps_.emplace_back(
        [regex = Regex(read_pattern(component), component.file() + ": " + component.place()),
         content = component.text("content")](std::string t) {
          return regex.replace_all(t, content);
        });
  } else {
    component.fail_unsupported({"NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Sequence"});
  }
}

std::string Normalizer::apply(std::string text) const {
  for (const auto& step : steps_) text = step(std::move(text));
  return text;
}

}  // namespace taper::detail
