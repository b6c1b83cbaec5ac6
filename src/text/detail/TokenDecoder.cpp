// SPDX-License-Identifier: Apache-2.0
#include "text/detail/TokenDecoder.hpp"

#include <charconv>
#include <optional>

#include "base/Text.hpp"
#include "base/Utf8.hpp"
#include "text/detail/ByteAlphabet.hpp"
#include "text/detail/Metaspace.hpp"
#include "text/detail/Regex.hpp"

namespace taper::detail {
namespace {

// The byte of a token "<0xNN>".
std::optional<char> fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  const char* end = token.data() + 5;
  const auto [stop, error] = std::from_chars(token.data() + 3, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return static_cast<char>(value);
}

// A run of byte tokens that is not UTF-8 becomes one U+FFFD per byte, unlike everywhere else.
void flush_bytes(std::string& bytes, std::vector<std::string>& out) {
  if (bytes.empty()) return;
  if (is_valid_utf8(bytes))
    out.push_back(bytes);
  else
    out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
  bytes.clear();
}

void fall_back_to_bytes(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  for (auto& token : tokens) {
    if (const auto byte = fallback_byte(token)) {
      bytes += *byte;
      continue;
    }
    flush_bytes(bytes, out);
    out.push_back(std::move(token));
  }
  flush_bytes(bytes, out);
  tokens = std::move(out);
}

std::string from_bytes_or_same(std::string token) {
  auto bytes = from_byte_alphabet(token);
  return bytes ? *bytes : token;
}

std::string join_all(const std::vector<std::string>& tokens, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += separator;
    text += tokens[i];
  }
  return text;
}

}  // namespace

TokenDecoder::TokenDecoder(const Component& component) {
  join_with_spaces_ = component.is_null();
  add(component);
}

void TokenDecoder::add_each(std::function<std::string(std::string)> change) {
  const auto chain = [change](std::vector<std::string>& tokens) {
    for (auto& token : tokens) token = change(std::move(token));
  };
  steps_.push_back({chain, change});
}

void TokenDecoder::add_metaspace(const Component& component) {
  const Metaspace meta(component);
  const auto chain = [meta](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool drops = i == 0 && meta.prepend != Prepend::kNever;
      replace_all(tokens[i], meta.replacement, drops ? "" : " ");
    }
  };
  steps_.push_back({chain, [meta](std::string token) {
                      replace_all(token, meta.replacement, " ");
                      return token;
                    }});
}

// Removes up to "start" leading and "stop" trailing copies of a character from each token.
void TokenDecoder::add_strip(const Component& component) {
  const std::string content = component.text("content");
  if (content.empty()) component.fail("content must not be empty");
  add_each([content, start = component.number("start"),
            stop = component.number("stop")](std::string token) {
    for (long i = 0; i < start && token.starts_with(content); ++i) token.erase(0, content.size());
    for (long i = 0; i < stop && token.ends_with(content); ++i)
      token.erase(token.size() - content.size());
    return token;
  });
}

void TokenDecoder::add(const Component& component) {
  if (component.is_null()) return;
  const std::string type = component.type();
  if (type == "Sequence") {
    for (const auto& child : component.children("decoders")) add(child);
  } else if (type == "ByteLevel") {
    steps_.push_back({[](std::vector<std::string>& tokens) {
                        std::string bytes;
                        for (auto& token : tokens) bytes += from_bytes_or_same(std::move(token));
                        tokens = {replace_invalid_utf8(bytes)};
                      },
                      from_bytes_or_same});
  } else if (type == "Metaspace") {
    add_metaspace(component);
  } else if (type == "Replace") {
    add_each([regex = Regex(read_pattern(component), component.file() + ": " + component.place()),
              content = component.text("content")](std::string token) {
      return regex.replace_all(token, content);
    });
  } else if (type == "ByteFallback") {
    steps_.push_back({fall_back_to_bytes, [](std::string token) {
                        const auto byte = fallback_byte(token);
                        return byte ? std::string(1, *byte) : token;
                      }});
  } else if (type == "Fuse") {
    steps_.push_back(
        {[](std::vector<std::string>& tokens) { tokens = {join_all(tokens, "")}; }, nullptr});
  } else if (type == "Strip") {
    add_strip(component);
  } else {
    component.fail_unsupported(
        {"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip", "Sequence"});
  }
}

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
  if (join_with_spaces_) return join_all(tokens, " ");
  for (const Step& step : steps_) step.chain(tokens);
  return join_all(tokens, "");
}

std::string TokenDecoder::piece_bytes(std::string token) const {
  for (const Step& step : steps_) {
    if (!step.piece) break;
    token = step.piece(std::move(token));
  }
  return token;
}

}  // namespace taper::detail
