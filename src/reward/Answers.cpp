// SPDX-License-Identifier: Apache-2.0
#include "reward/Answers.hpp"

#include <cctype>
#include <vector>

#include "base/Text.hpp"
#include "reward/MathAnswer.hpp"

namespace taper {
namespace {

bool is_number_part(char c) {
  return is_digit(c) || c == '.' || c == ',';
}

// The last count characters (code points) of a text.
std::string_view last_characters(std::string_view text, int count) {
  std::size_t begin = text.size();
  while (begin > 0 && count > 0) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) --count;
  }
  return text.substr(begin);
}

// The match of -?[0-9.,]+ at position; empty if there is none.
std::string_view number_at(std::string_view text, std::size_t position) {
  std::size_t end = position;
  if (end < text.size() && text[end] == '-') ++end;
  const std::size_t digits = end;
  while (end < text.size() && is_number_part(text[end])) ++end;
  return end > digits ? text.substr(position, end - position) : std::string_view();
}

std::vector<std::string_view> all_numbers(std::string_view text) {
  std::vector<std::string_view> numbers;
  for (std::size_t i = 0; i < text.size();) {
    const auto number = number_at(text, i);
    if (!number.empty()) numbers.push_back(number);
    i += number.empty() ? 1 : number.size();
  }
  return numbers;
}

// The braced group that opens at text[open], without its braces.
std::optional<std::string_view> braced(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return std::nullopt;
}

double as_score(bool right) {
  return right ? 1.0 : 0.0;
}

}  // namespace

std::optional<std::string> extract_task_answer(std::string_view response) {
  const auto mark = response.rfind('#');
  if (mark == std::string_view::npos) return std::nullopt;
  return trim(response.substr(mark + 1));
}

double score_task_answer(std::string_view truth, std::string_view response) {
  const auto answer = extract_task_answer(response);
  return as_score(answer && *answer == trim(truth));
}

double score_exact_match(std::string_view truth, std::string_view response) {
  return as_score(trim(truth) == trim(response));
}

std::optional<std::string> extract_gsm8k_answer(std::string_view response, Gsm8kRule rule) {
  const std::string_view tail = last_characters(response, 300);
  if (rule == Gsm8kRule::kFlexible) {
    const auto numbers = all_numbers(tail);
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
      if (*number != ".") return std::string(*number);
    return std::nullopt;
  }
  constexpr std::string_view kMark = "#### ";
  for (auto at = tail.rfind(kMark); at != std::string_view::npos;
       at = at == 0 ? at - 1 : tail.rfind(kMark, at - 1)) {
    const auto number = number_at(tail, at + kMark.size());
    if (number.empty()) continue;
    std::string answer(number);
    remove_all(answer, ",");
    return answer;
  }
  return std::nullopt;
}

double score_gsm8k(std::string_view truth, std::string_view response, Gsm8kRule rule) {
  std::string expected = trim(truth);
  remove_all(expected, ",");
  const auto answer = extract_gsm8k_answer(response, rule);
  return as_score(answer && *answer == expected);
}

std::optional<std::string> extract_boxed_answer(std::string_view response) {
  const auto boxed = response.rfind("\\boxed"), fbox = response.rfind("\\fbox");
  const bool any_boxed = boxed != std::string_view::npos, any_fbox = fbox != std::string_view::npos;
  if (!any_boxed && !any_fbox) return std::nullopt;
  const bool use_boxed = any_boxed && (!any_fbox || boxed > fbox);
  const std::size_t behind = use_boxed ? boxed + 6 : fbox + 5;
  if (behind < response.size() && response[behind] == '{') {
    const auto group = braced(response, behind);
    return group ? std::optional<std::string>(*group) : std::nullopt;
  }
  if (behind < response.size() && response[behind] == ' ') {  // "\boxed 42$"
    const auto rest = response.substr(behind + 1);
    return trim(rest.substr(0, rest.find('$')));
  }
  return std::nullopt;
}

namespace {

// \frac12 and \frac1{2} to \frac{1}{2}; \sqrt3 to \sqrt{3}. Arguments given in braces stay.
std::string brace_arguments(const std::string& text, std::string_view command, int arguments) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, command.size(), command) != 0) {
      out += text[i++];
      continue;
    }
    out += command;
    i += command.size();
    for (int k = 0; k < arguments && i < text.size(); ++k) {
      if (text[i] == '{') {
        const auto group = braced(text, i);
        if (!group) break;
        out.append("{").append(*group) += '}';
        i += group->size() + 2;
      } else if (std::isalnum(static_cast<unsigned char>(text[i]))) {
        out.append("{").append(1, text[i++]) += '}';
      } else {
        break;
      }
    }
  }
  return out;
}

// a/b of two integers to \frac{a}{b}.
std::string slash_to_fraction(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || text.find('/', slash + 1) != std::string::npos) return text;
  const std::string a = text.substr(0, slash), b = text.substr(slash + 1);
  const auto integer = [](std::string_view s) {
    if (s.starts_with('-')) s.remove_prefix(1);
    return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!integer(a) || !integer(b)) return text;
  std::string fraction = "\\frac{";
  return fraction.append(a).append("}{").append(b).append("}");
}

void drop_short_left_side(std::string& text) {
  const auto equals = text.find('=');
  if (equals != std::string::npos && equals <= 2 && text.find('=', equals + 1) == std::string::npos)
    text.erase(0, equals + 1);
}

}  // namespace

std::string normalize_math(std::string_view answer) {
  std::string text = trim(answer);
  for (const char* part :
       {"\n", "\\!", "\\left", "\\right", "^{\\circ}", "^\\circ", "\\$", "\\%", "%"})
    remove_all(text, part);
  replace_all(text, "\\\\", "\\");
  replace_all(text, "tfrac", "frac");
  replace_all(text, "dfrac", "frac");
  const auto unit = text.rfind("\\text{ ");
  if (unit != std::string::npos) text.erase(unit);
  replace_all(text, " .", " 0.");
  replace_all(text, "{.", "{0.");
  if (text.starts_with('.')) text.insert(text.begin(), '0');
  remove_all(text, " ");
  drop_short_left_side(text);
  text = brace_arguments(text, "\\sqrt", 1);
  text = brace_arguments(text, "\\frac", 2);
  if (text == "0.5") return "\\frac{1}{2}";
  return slash_to_fraction(text);
}

double score_boxed_math(std::string_view truth, std::string_view response) {
  const auto answer = extract_boxed_answer(response);
  if (!answer) return 0.0;
  const auto boxed_truth = extract_boxed_answer(truth);
  return as_score(same_math_answer(*answer, boxed_truth ? *boxed_truth : truth));
}

}  // namespace taper
