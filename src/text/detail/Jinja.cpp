// SPDX-License-Identifier: Apache-2.0
#include "text/detail/Jinja.hpp"

#include <ctime>
#include <minja/minja.hpp>
#include <utility>

#include "base/Error.hpp"
#include "base/Utf8.hpp"

namespace taper::detail {
namespace {

using Environment = std::shared_ptr<minja::Context>;

minja::Value strftime_now(const Environment&, minja::ArgumentsValue& arguments) {
  arguments.expectArgs("strftime_now", {1, 1}, {0, 0});
  std::tm date{};
  date.tm_year = 2024 - 1900;
  date.tm_mon = 6;
  date.tm_mday = 26;
  date.tm_wday = 5;
  date.tm_yday = 207;
  char text[256];
  const auto format = arguments.args[0].get<std::string>();
  return std::string(text, std::strftime(text, sizeof text, format.c_str(), &date));
}

// Without the characters at both ends that Python's str.strip() removes.
std::string strip(std::string_view text) {
  const auto blank = [](char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); };
  std::size_t begin = 0, end = text.size();
  while (begin < end) {
    const CodePoint c = read_utf8(text, begin);
    if (!blank(c.value)) break;
    begin += c.bytes;
  }
  while (end > begin) {
    std::size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!blank(read_utf8(text, last).value)) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string text_of(const minja::Value& value) {
  return value.is_string() ? value.get<std::string>() : value.to_str();
}

// The library's own filter knows only the blanks of ASCII.
minja::Value trim(const Environment&, minja::ArgumentsValue& arguments) {
  arguments.expectArgs("trim", {1, 1}, {0, 0});
  return strip(text_of(arguments.args[0]));
}

// Filters that the library has not.
minja::Value replace(const Environment&, minja::ArgumentsValue& arguments) {
  arguments.expectArgs("replace", {3, 3}, {0, 0});
  std::string text = text_of(arguments.args[0]);
  const std::string from = text_of(arguments.args[1]), to = text_of(arguments.args[2]);
  for (std::size_t at = text.find(from); !from.empty() && at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}
minja::Value capitalize(const Environment&, minja::ArgumentsValue& arguments) {
  arguments.expectArgs("capitalize", {1, 1}, {0, 0});
  std::string text = text_of(arguments.args[0]);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace

struct Jinja::Program {
  std::shared_ptr<minja::TemplateNode> root;
};

Jinja::Jinja(const std::string& text, std::string where) : where_(std::move(where)) {
  const minja::Options options{
      .trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false};
  try {
    program_ = std::make_shared<const Program>(Program{minja::Parser::parse(text, options)});
  } catch (const std::exception& error) {
    TAPER_FAIL(ExitCode::kBadInput,
               where_ << ": the chat template is not valid Jinja (" << error.what() << ")");
  }
}

std::string Jinja::render(const nlohmann::ordered_json& variables) const {
  const auto environment = minja::Context::make(minja::Value(variables));
  environment->set("strftime_now", minja::Value::callable(strftime_now));
  environment->set("trim", minja::Value::callable(trim));
  environment->set("replace", minja::Value::callable(replace));
  environment->set("capitalize", minja::Value::callable(capitalize));
  try {
    return program_->root->render(environment);
  } catch (const std::exception& error) {
    TAPER_FAIL(ExitCode::kBadInput,
               "the chat template (" << where_ << ") refuses it: " << error.what());
  }
}

}  // namespace taper::detail
