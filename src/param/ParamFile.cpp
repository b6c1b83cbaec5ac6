// SPDX-License-Identifier: Apache-2.0
#include "param/ParamFile.hpp"

#include <Teuchos_ParameterList.hpp>
#include <algorithm>
#include <map>
#include <stdexcept>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/TextFile.hpp"
#include "param/detail/ListTools.hpp"
#include "param/detail/YamlReader.hpp"
#include "param/detail/YamlScalar.hpp"

namespace taper::param {
namespace {

detail::Value read_assigned(const std::string& text) {
  if (text.starts_with('[') || text.starts_with('\'') || text.starts_with('"'))
    return detail::read_yaml_value(text);
  return detail::infer_scalar(text);  // also what needs quotes in a file
}

bool is_list(const Teuchos::ParameterList& list, const std::string& name) {
  return list.isParameter(name) && list.isSublist(name);
}

using Values = std::vector<std::pair<std::string, std::string>>;

void add_values(const Teuchos::ParameterList& list, const std::string& prefix, Values& found) {
  for (auto entry = list.begin(); entry != list.end(); ++entry) {
    const std::string path = prefix + list.name(entry);
    if (list.isSublist(list.name(entry)))
      add_values(list.sublist(list.name(entry)), path + "/", found);
    else
      found.emplace_back(path, detail::format_value(detail::get(list.entry(entry))));
  }
}

}  // namespace

struct ParamFile::Content {
  std::string name = "command line";
  std::string text;
  Teuchos::ParameterList list{"run"};
  detail::LineMap lines;
  std::map<std::string, std::string> assigned;  // path -> "--set ..."
};

ParamFile::ParamFile() : content_(std::make_unique<Content>()) {}
ParamFile::~ParamFile() = default;
ParamFile::ParamFile(ParamFile&&) noexcept = default;
ParamFile& ParamFile::operator=(ParamFile&&) noexcept = default;

ParamFile ParamFile::read(const std::string& path) {
  return parse(read_text_file(path), path);
}

ParamFile ParamFile::parse(const std::string& text, const std::string& name) {
  ParamFile file;
  Content& content = *file.content_;
  content.name = path_text(name);
  content.text = text;
  TAPER_VALIDATE(name.ends_with(".yaml") || name.ends_with(".yml"),
                 content.name << " has no known ending (a run file ends in .yaml or .yml)");
  detail::read_yaml(text, content.name, content.list, content.lines);
  return file;
}

void ParamFile::set(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string path = trim(assignment.substr(0, std::min(equals, assignment.size())));
  TAPER_VALIDATE(equals != std::string::npos && !path.empty() && path.front() != '/' &&
                     path.back() != '/' && path.find("//") == std::string::npos,
                 "--set " << assignment << " is not understood (expected: "
                          << "--set Section/Name=value)");
  put(path, assignment.substr(equals + 1), "--set " + assignment);
}

bool ParamFile::set_default(const std::string& path, const std::string& value,
                            const std::string& source) {
  const auto known = values();
  if (std::any_of(known.begin(), known.end(), [&](const auto& v) { return v.first == path; }))
    return false;
  put(path, value, source);
  return true;
}

void ParamFile::put(const std::string& path, const std::string& text, const std::string& source) {
  detail::Value value;
  try {
    value = read_assigned(trim(text));
  } catch (const std::invalid_argument& problem) {
    TAPER_FAIL(ExitCode::kBadInput, source << " cannot be read as YAML (" << problem.what() << ")");
  }
  Teuchos::ParameterList* list = &content_->list;
  std::size_t begin = 0;
  for (std::size_t slash; (slash = path.find('/', begin)) != std::string::npos; begin = slash + 1) {
    const std::string name = path.substr(begin, slash - begin);
    TAPER_VALIDATE(!list->isParameter(name) || list->isSublist(name),
                   source << ": " << path.substr(0, slash) << " is a value, not a section (set by "
                          << where(path.substr(0, slash)) << ")");
    list = &list->sublist(name);
  }
  const std::string name = path.substr(begin);
  TAPER_VALIDATE(
      !is_list(*list, name) || list->sublist(name).numParams() == 0,
      source << " replaces a whole section (name the values in it: " << path << "/Name=value)");
  list->remove(name, false);
  detail::put(*list, name, value);
  content_->assigned[path] = source;
}

const std::string& ParamFile::name() const {
  return content_->name;
}
const std::string& ParamFile::text() const {
  return content_->text;
}
const Teuchos::ParameterList& ParamFile::list() const {
  return content_->list;
}

std::vector<std::pair<std::string, std::string>> ParamFile::values() const {
  Values found;
  add_values(content_->list, "", found);
  return found;
}

std::string ParamFile::where(const std::string& path) const {
  if (const auto found = content_->assigned.find(path); found != content_->assigned.end())
    return found->second;
  if (const auto found = content_->lines.find(path); found != content_->lines.end())
    return content_->name + " line " + std::to_string(found->second);
  // A section that only an assignment to something in it has made.
  const std::string inside = path + "/";
  if (const auto next = content_->assigned.lower_bound(inside);
      next != content_->assigned.end() && next->first.starts_with(inside) && !path.empty())
    return next->second;
  return content_->name;
}

}  // namespace taper::param
