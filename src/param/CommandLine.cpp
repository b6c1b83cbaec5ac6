// SPDX-License-Identifier: Apache-2.0
#include "param/CommandLine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "param/detail/YamlScalar.hpp"

namespace taper::param {
namespace detail {

struct Option {
  enum class Arity { kFlag, kOne, kCommaList, kRepeated };

  std::string name;   // without dashes; of a positional its label
  std::string label;  // of the value
  std::string doc;
  std::unique_ptr<Binding> binding;
  Arity arity = Arity::kOne;
  std::string default_text;
  bool required = false;
  bool given = false;
  std::vector<Value> texts;  // of a repeated option
};

namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kDocColumn = 30;

// "--seed S"
std::string show_usage(const Option& option) {
  std::string usage = "--" + option.name;
  if (option.arity == Option::Arity::kFlag)
    return usage + (option.default_text.empty() ? "" : "=off");
  return usage + " " + (option.label.empty() ? "WORD" : option.label);
}

// "the doc (an integer, at least 0; default 1)"
std::string show_doc(const Option& option) {
  std::vector<std::string> notes;
  const std::string limits = option.binding->limits.describe();
  if (option.binding->expects().starts_with("one of") || !limits.empty())
    notes.push_back(option.binding->expects() + (limits.empty() ? "" : ", " + limits));
  if (option.arity == Option::Arity::kRepeated) notes.push_back("may be repeated");
  if (option.required)
    notes.push_back("required");
  else if (!option.default_text.empty())
    notes.push_back("default " +
                    (option.arity == Option::Arity::kFlag ? "on" : option.default_text));
  return option.doc + (notes.empty() ? "" : " (" + join(notes, "; ") + ")");
}

std::string show_default(const Binding& binding) {
  const Value value = binding.show();
  const bool empty = (value.kind == Value::Kind::kText && value.text.empty()) ||
                     (value.kind == Value::Kind::kList && value.items.empty()) ||
                     (value.kind == Value::Kind::kFlag && !value.flag) ||
                     (value.kind == Value::Kind::kNumber && std::isinf(value.number));  // no limit
  if (empty) return "";
  if (value.kind == Value::Kind::kText) return value.text;
  if (value.kind != Value::Kind::kList) return format_scalar(value);
  std::vector<std::string> items;
  for (const auto& item : value.items) items.push_back(format_scalar(item));
  return join(items, ",");
}

void write_wrapped(std::ostream& out, const std::string& text, std::size_t column) {
  std::istringstream words(text);
  std::string word;
  std::size_t width = column;
  bool first = true;
  while (words >> word) {
    if (!first && width + 1 + word.size() > kWidth) {
      out << '\n' << std::string(column, ' ');
      width = column;
      first = true;
    }
    out << (first ? "" : " ") << word;
    width += word.size() + (first ? 0 : 1);
    first = false;
  }
  out << '\n';
}

void write_entry(std::ostream& out, const std::string& usage, const std::string& doc) {
  const std::string head = "  " + usage;
  out << head;
  if (head.size() + 2 > kDocColumn)
    out << '\n' << std::string(kDocColumn, ' ');
  else
    out << std::string(kDocColumn - head.size(), ' ');
  write_wrapped(out, doc, kDocColumn);
}

Value split_at_commas(const std::string& text) {
  std::vector<Value> items;
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(Value::of_text(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return Value::of_list(std::move(items));
}

}  // namespace
}  // namespace detail

using detail::Option;

namespace {

detail::Limits& limits_of(Option& option) {
  TAPER_INSIST(option.binding->has_limits(),
               "option --" << option.name << " got limits, but is no number");
  return option.binding->limits;
}

}  // namespace

CommandLine::Declared& CommandLine::Declared::at_least(double low) {
  limits_of(*option_).low = low;
  limits_of(*option_).low_allowed = true;
  return *this;
}

CommandLine::Declared& CommandLine::Declared::at_most(double high) {
  limits_of(*option_).high = high;
  return *this;
}

CommandLine::Declared& CommandLine::Declared::above(double low) {
  limits_of(*option_).low = low;
  limits_of(*option_).low_allowed = false;
  return *this;
}

CommandLine::Declared& CommandLine::Declared::required() {
  option_->required = true;
  option_->binding->must_hold_something = true;
  return *this;
}

CommandLine::CommandLine(std::string program, std::string purpose)
    : program_(std::move(program)), purpose_(std::move(purpose)) {}

CommandLine::~CommandLine() = default;

CommandLine::Declared CommandLine::positional(const std::string& label, std::string& member,
                                              const std::string& doc) {
  auto option = std::make_unique<Option>();
  option->name = label;
  option->doc = doc;
  option->binding = detail::make_text(member);
  option->default_text = detail::show_default(*option->binding);
  positionals_.push_back(std::move(option));
  return Declared(*positionals_.back());
}

CommandLine::Declared CommandLine::flag(const std::string& name, bool& member,
                                        const std::string& doc) {
  Declared declared = add(name, "", doc, detail::make_flag(member));
  options_.back()->arity = Option::Arity::kFlag;
  return declared;
}

CommandLine::Declared CommandLine::repeated(const std::string& name,
                                            std::vector<std::string>& member,
                                            const std::string& label, const std::string& doc) {
  Declared declared = add(name, label, doc, detail::make_list(member));
  options_.back()->arity = Option::Arity::kRepeated;
  return declared;
}

CommandLine::Declared CommandLine::add(const std::string& name, const std::string& label,
                                       const std::string& doc,
                                       std::unique_ptr<detail::Binding> binding) {
  const bool taken =
      name == "help" || std::any_of(options_.begin(), options_.end(),
                                    [&](const auto& option) { return option->name == name; });
  TAPER_INSIST(!taken, "option --" << name << " is declared twice");
  auto option = std::make_unique<Option>();
  option->name = name;
  option->label = label;
  option->doc = doc;
  option->arity = binding->is_list() ? Option::Arity::kCommaList : Option::Arity::kOne;
  option->default_text = detail::show_default(*binding);
  option->binding = std::move(binding);
  options_.push_back(std::move(option));
  return Declared(*options_.back());
}

bool CommandLine::parse_or_print_help(int argc, const char* const* argv) {
  if (parse({argv + std::min(argc, 1), argv + argc}) == Next::kRun) return false;
  std::fputs(help().c_str(), stdout);
  return true;
}

CommandLine::Next CommandLine::parse(const std::vector<std::string>& arguments) {
  for (auto* list : {&positionals_, &options_}) {
    for (auto& option : *list) {
      option->given = false;
      option->texts.clear();
    }
  }
  // Help is given however wrong the rest is.
  for (const auto& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h" || argument.starts_with("--help="))
      return Next::kShowHelp;
  }
  std::size_t position = 0;
  bool only_positionals = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_positionals || argument.size() < 2 || argument[0] != '-') {
      take_positional(position++, argument);
    } else if (argument == "--") {
      only_positionals = true;
    } else {
      if (!argument.starts_with("--"))
        fail("option " + argument + " is unknown; options begin with two dashes");
      const std::size_t equals = std::min(argument.find('='), argument.size());
      Option& option = find(argument.substr(2, equals - 2));
      if (equals < argument.size()) {
        take(option, argument.substr(equals + 1));
      } else if (option.arity == Option::Arity::kFlag) {
        take(option, "true");
      } else {
        const bool last = i + 1 == arguments.size() || arguments[i + 1].starts_with("--");
        if (last) fail("option " + detail::show_usage(option) + " needs a value");
        take(option, arguments[++i]);
      }
    }
  }
  check_required();
  return Next::kRun;
}

void CommandLine::take(Option& option, const std::string& text) const {
  if (option.given && option.arity != Option::Arity::kRepeated)
    fail("option --" + option.name + " is given twice");
  option.given = true;
  detail::Value value = detail::Value::of_text(text);
  if (option.arity == Option::Arity::kRepeated) {
    option.texts.push_back(std::move(value));
    value = detail::Value::of_list(option.texts);
  } else if (option.arity == Option::Arity::kCommaList) {
    value = detail::split_at_commas(text);
  }
  const auto refusal = option.binding->take(value);
  if (refusal)
    fail("option --" + option.name + refusal->at + " is " + refusal->found + " (" +
         refusal->reason + ")" + refusal->advice);
}

void CommandLine::take_positional(std::size_t position, const std::string& text) const {
  if (position >= positionals_.size())
    fail("unexpected argument \"" + text + "\"" +
         (positionals_.empty() ? "; all of this command's arguments are options (--help lists them)"
                               : ""));
  Option& positional = *positionals_[position];
  positional.given = true;
  if (const auto refusal = positional.binding->take(detail::Value::of_text(text)))
    fail("argument " + positional.name + " is " + refusal->found + " (" + refusal->reason + ")");
}

void CommandLine::check_required() const {
  for (const auto& positional : positionals_) {
    if (positional->required && !positional->given)
      fail("argument " + positional->name + " is missing (" + positional->doc + ")");
  }
  for (const auto& option : options_) {
    if (option->required && !option->given)
      fail("option " + detail::show_usage(*option) + " is missing (" + option->doc + ")");
  }
}

Option& CommandLine::find(const std::string& name) const {
  std::vector<std::string> known = {"help"};
  for (const auto& option : options_) {
    if (option->name == name) return *option;
    known.push_back(option->name);
  }
  const std::string near = nearest(name, known);
  fail("option --" + name + " is unknown" + (near.empty() ? "" : "; did you mean --" + near + "?"));
}

void CommandLine::fail(const std::string& problem) const {
  TAPER_FAIL(ExitCode::kBadInput,
             program_ << ": " << problem << "\n  " << program_ << " --help lists all options");
}

bool CommandLine::given(const std::string& name) const {
  for (const auto* list : {&positionals_, &options_}) {
    for (const auto& option : *list) {
      if (option->name == name) return option->given;
    }
  }
  TAPER_INSIST(false, "option --" << name << " was never declared");
  return false;
}

std::string CommandLine::help() const {
  std::ostringstream out;
  out << "usage: " << program_;
  for (const auto& positional : positionals_)
    out << (positional->required ? " " + positional->name : " [" + positional->name + "]");
  for (const auto& option : options_) {
    if (option->required) out << ' ' << detail::show_usage(*option);
  }
  out << " [options]\n\n";
  detail::write_wrapped(out, purpose_, 0);
  if (!positionals_.empty()) out << "\narguments:\n";
  for (const auto& positional : positionals_)
    detail::write_entry(out, positional->name, detail::show_doc(*positional));
  out << "\noptions:\n";
  for (const auto& option : options_)
    detail::write_entry(out, detail::show_usage(*option), detail::show_doc(*option));
  detail::write_entry(out, "--help", "shows this text");
  return out.str();
}

}  // namespace taper::param
