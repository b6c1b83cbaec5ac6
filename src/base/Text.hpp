// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taper {

// The entry of known nearest to word by edit distance; empty if nothing is similar. For "did you
// mean".
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

// "1, 2, 3"
template <std::integral T>
std::string join(const std::vector<T>& numbers, std::string_view separator = ", ") {
  std::vector<std::string> words;
  words.reserve(numbers.size());
  for (const T number : numbers) words.push_back(std::to_string(number));
  return join(words, separator);
}

// "1 file", "3 files"; `what` is the singular of a word that takes an s.
std::string count_text(std::int64_t number, const std::string& what);

// "1.50 GiB", "12 B"
std::string format_bytes(double bytes);

// Without the white space (of ASCII) at both ends.
std::string trim(std::string_view text);

// All occurrences from left to right, none that a replacement makes; linear. Nothing happens if
// `from` is empty.
void replace_all(std::string& text, std::string_view from, std::string_view to);
inline void remove_all(std::string& text, std::string_view part) {
  replace_all(text, part, "");
}

// Of ASCII, whatever the locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// As printf() would write it.
std::string format_text(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

// Of this machine, "unknown" if it has no name.
std::string host_name();

// Whether a variable of the environment says "yes", or is not there. Throws Error unless it is
// "yes" or "no".
bool is_wished(const char* variable);

// Now, as "2026-01-31T12:00:00Z".
std::string utc_text();

// 64-bit FNV-1a, for configuration and content hashes (not cryptographic).
std::uint64_t fnv1a(std::string_view data, std::uint64_t start = 0xcbf29ce484222325ull);

}  // namespace taper
