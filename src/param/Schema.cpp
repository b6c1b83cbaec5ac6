// SPDX-License-Identifier: Apache-2.0
#include "param/Schema.hpp"

#include <Teuchos_ParameterList.hpp>
#include <algorithm>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "param/detail/ListTools.hpp"
#include "param/detail/SchemaTree.hpp"
#include "param/detail/YamlScalar.hpp"

namespace taper::param {
namespace detail {
namespace {

void list_parameters(const SectionNode& section, std::vector<const ParameterNode*>& found) {
  for (const auto& parameter : section.parameters) found.push_back(parameter.get());
  for (const auto& child : section.sections) list_parameters(*child, found);
}

// Walks a list beside the tree and collects what is wrong.
class ListReader {
 public:
  ListReader(const ParamFile& file, SectionNode& root) : file_(file), root_(root) {}

  void read(SectionNode& section, const Teuchos::ParameterList* list) {
    const std::size_t problems_before = problems.size();
    if (list != nullptr) read_entries(section, *list);
    for (const auto& child : section.sections) {
      const bool given = list != nullptr && list->isParameter(child->name);
      if (!given) read(*child, nullptr);
    }
    if (problems.size() > problems_before) return;
    for (const auto& check : section.checks) {
      for (const auto& problem : check())
        problems.push_back(
            sources_of(problem) + ": " +
            (section.path.empty() || problem.starts_with(section.path) ? "" : section.path + ": ") +
            problem);
    }
  }

  std::vector<std::string> problems;

 private:
  void read_entries(SectionNode& section, const Teuchos::ParameterList& list) {
    for (auto it = list.begin(); it != list.end(); ++it) {
      const std::string& name = list.name(it);
      const auto& entry = list.entry(it);
      if (auto* parameter = section.find_parameter(name))
        read_parameter(*parameter, entry);
      else if (auto* child = section.find_section(name))
        read_child(*child, entry);
      else if (section.describe_entry)
        read_named_by_file(section, name, entry);
      else
        report(section.path_of(name), describe_unknown(section, name));
    }
  }

  void read_parameter(ParameterNode& parameter, const Teuchos::ParameterEntry& entry) {
    const auto refusal = parameter.binding->take(get(entry));
    if (!refusal) return;
    report(parameter.path,
           refusal->at + " is " + refusal->found + " (" + refusal->reason + ")" + refusal->advice);
  }

  void read_child(SectionNode& child, const Teuchos::ParameterEntry& entry) {
    if (entry.isList()) {
      if (child.given != nullptr) *child.given = true;
      read(child, &Teuchos::getValue<Teuchos::ParameterList>(entry));
      return;
    }
    const std::string names = child.names().empty() ? "" : " with " + join(child.names());
    report(child.path, " is " + show_found(get(entry)) + " (a section" + names + " is expected)");
  }

  void read_named_by_file(SectionNode& section, const std::string& name,
                          const Teuchos::ParameterEntry& entry) {
    if (!entry.isList()) {
      report(section.path_of(name), " is " + show_found(get(entry)) +
                                        " (a section of parameters is expected under each name)");
      return;
    }
    const auto& list = Teuchos::getValue<Teuchos::ParameterList>(entry);
    SectionNode& child = section.add_section(name);
    section.describe_entry(child, [&](const std::string& parameter) {
      return list.isParameter(parameter) ? get(list.getEntry(parameter)).text : std::string();
    });
    read(child, &list);
  }

  std::string describe_unknown(const SectionNode& section, const std::string& name) const {
    const std::string place = section.path.empty() ? "the top level" : "section " + section.path;
    std::string text = " is unknown (" + place + " knows " + join(section.names()) + ")";
    const std::string near = nearest(name, section.names());
    const std::string elsewhere = find_elsewhere(root_, name);
    if (!near.empty() && (elsewhere.empty() || equal_ignoring_case(near, name)))
      text += "; did you mean " + near + "?";
    else if (!elsewhere.empty())
      text += "; did you mean " + elsewhere + "?";
    return text;
  }

  // The path of a parameter or section with that name anywhere.
  static std::string find_elsewhere(const SectionNode& section, const std::string& name) {
    for (const auto& known : section.names()) {
      if (equal_ignoring_case(known, name)) return section.path_of(known);
    }
    for (const auto& child : section.sections) {
      if (const auto path = find_elsewhere(*child, name); !path.empty()) return path;
    }
    return "";
  }

  // Where the parameters come from that a problem names by their paths: "run.yaml line 7, --set
  // Rollout/Max Running=9"; the name of the file if all have their defaults.
  std::string sources_of(const std::string& problem) const {
    std::vector<std::string> sources;
    for (const std::string& path : paths_in(problem)) {
      const std::string source = file_.where(path);
      if (source != file_.name() &&
          std::find(sources.begin(), sources.end(), source) == sources.end())
        sources.push_back(source);
    }
    return sources.empty() ? file_.name() : join(sources);
  }

  // The paths of parameters that a text has, in its order.
  std::vector<std::string> paths_in(const std::string& text) const {
    std::vector<const ParameterNode*> known;
    list_parameters(root_, known);
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const std::string* longest = nullptr;
      for (const ParameterNode* parameter : known) {
        const std::string& path = parameter->path;
        if (text.compare(at, path.size(), path) == 0 &&
            (longest == nullptr || path.size() > longest->size()))
          longest = &path;
      }
      if (longest == nullptr) continue;
      found.push_back(*longest);
      at += longest->size() - 1;
    }
    return found;
  }

  void report(const std::string& path, const std::string& problem) {
    problems.push_back(file_.where(path) + ": " + path + problem);
  }

  const ParamFile& file_;
  SectionNode& root_;
};

// Mistakes of a description are found at the first start of any program that has it.
void expect_description(bool sound, const std::string& path, const char* mistake) {
  TAPER_INSIST(sound, "parameter " << path << " " << mistake);
}

}  // namespace

ParameterNode* SectionNode::find_parameter(const std::string& wanted) const {
  for (const auto& parameter : parameters) {
    if (parameter->name == wanted) return parameter.get();
  }
  return nullptr;
}

SectionNode* SectionNode::find_section(const std::string& wanted) const {
  for (const auto& section : sections) {
    if (section->name == wanted) return section.get();
  }
  return nullptr;
}

SectionNode& SectionNode::add_section(const std::string& wanted) {
  auto added = std::make_unique<SectionNode>();
  added->name = wanted;
  added->path = path_of(wanted);
  sections.push_back(std::move(added));
  return *sections.back();
}

std::vector<std::string> SectionNode::names() const {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter->name);
  for (const auto& section : sections) names.push_back(section->name);
  return names;
}

}  // namespace detail

detail::Limits& Parameter::limits() {
  detail::expect_description(node_->binding->has_limits(), node_->path,
                             "got limits, but is no number");
  return node_->binding->limits;
}

Parameter& Parameter::at_least(double low) {
  limits().low = low;
  limits().low_allowed = true;
  return *this;
}

Parameter& Parameter::at_most(double high) {
  limits().high = high;
  limits().high_allowed = true;
  return *this;
}

Parameter& Parameter::above(double low) {
  limits().low = low;
  limits().low_allowed = false;
  return *this;
}

Parameter& Parameter::below(double high) {
  limits().high = high;
  limits().high_allowed = false;
  return *this;
}

Parameter& Parameter::not_empty() {
  detail::expect_description(node_->binding->is_list() || node_->binding->expects() == "text",
                             node_->path, "must not be empty, but is neither text nor a list");
  node_->binding->must_hold_something = true;
  return *this;
}

Section Section::section(const std::string& name, const std::string& doc) {
  detail::expect_description(node_->find_parameter(name) == nullptr, node_->path_of(name),
                             "is described as a section too");
  detail::SectionNode* child = node_->find_section(name);
  if (child == nullptr) child = &node_->add_section(name);
  if (child->doc.empty()) child->doc = doc;
  return Section(*child);
}

void Section::entries(const std::string& name, const std::string& doc, DescribeEntry describe) {
  section(name, doc).node_->describe_entry = [describe = std::move(describe)](
                                                 detail::SectionNode& entry, const Peek& peek) {
    describe(Section(entry), entry.name, peek);
  };
}

void Section::optional(bool& given) {
  node_->given = &given;
}

void Section::check(std::function<std::vector<std::string>()> problems) {
  node_->checks.push_back(std::move(problems));
}

Parameter Section::add(const std::string& name, const std::string& doc,
                       std::unique_ptr<detail::Binding> binding) {
  const std::string path = node_->path_of(name);
  detail::expect_description(
      node_->find_parameter(name) == nullptr && node_->find_section(name) == nullptr, path,
      "is described twice");
  detail::expect_description(!name.empty() && name.find('/') == std::string::npos, path,
                             "has a name that cannot be part of a path");
  auto node = std::make_unique<detail::ParameterNode>();
  node->name = name;
  node->path = path;
  node->doc = doc;
  node->default_value = binding->show();
  node->binding = std::move(binding);
  node_->parameters.push_back(std::move(node));
  return Parameter(*node_->parameters.back());
}

Schema::Schema() : Schema(std::make_unique<detail::SectionNode>()) {}

Schema::Schema(std::unique_ptr<detail::SectionNode> root)
    : Section(*root), root_(std::move(root)) {}

Schema::~Schema() = default;

std::vector<std::string> Schema::read_and_list_problems(const ParamFile& file) {
  detail::ListReader reader(file, *root_);
  reader.read(*root_, &file.list());
  return reader.problems;
}

void Schema::read(const ParamFile& file) {
  const std::vector<std::string> problems = read_and_list_problems(file);
  if (problems.empty()) return;
  if (problems.size() == 1) TAPER_FAIL(ExitCode::kBadInput, problems[0]);
  TAPER_FAIL(ExitCode::kBadInput, file.name() << " has " << problems.size() << " problems:\n  "
                                              << join(problems, "\n  "));
}

std::string Schema::current_value(const std::string& path) const {
  std::vector<const detail::ParameterNode*> parameters;
  detail::list_parameters(*root_, parameters);
  std::vector<std::string> known;
  for (const auto* parameter : parameters) {
    known.push_back(parameter->path);
    if (parameter->path != path) continue;
    const detail::Value value = parameter->binding->show();
    return value.kind == detail::Value::Kind::kText ? value.text : detail::format_value(value);
  }
  const std::string close = nearest(path, known);
  TAPER_FAIL(ExitCode::kBadInput, "there is no parameter "
                                      << path
                                      << (close.empty() ? "" : "; did you mean '" + close + "'?"));
}

std::string Schema::defaults_yaml() const {
  return detail::write_yaml(*root_, detail::Which::kDefaults);
}

std::string Schema::current_yaml() const {
  return detail::write_yaml(*root_, detail::Which::kCurrent);
}

}  // namespace taper::param
