// SPDX-License-Identifier: Apache-2.0
#include "param/detail/XmlReader.hpp"

#include <Teuchos_ParameterList.hpp>
#include <Teuchos_StringInputSource.hpp>
#include <Teuchos_XMLObject.hpp>
#include <exception>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "param/detail/ListTools.hpp"

namespace taper::param::detail {
namespace {

// The reason within Teuchos' exception text, whose first paragraphs name its own source files.
std::string extract_reason(const std::string& what) {
  const std::size_t found = what.find("XML parse error");
  std::string reason = what.substr(found == std::string::npos ? 0 : found);
  reason.erase(std::min(reason.find('\n'), reason.size()));
  return found == std::string::npos ? "not well-formed" : reason;
}

class XmlReader {
 public:
  explicit XmlReader(const std::string& file) : file_(file) {}

  void read_section(const Teuchos::XMLObject& element, const std::string& prefix,
                    Teuchos::ParameterList& list) const {
    for (int i = 0; i < element.numChildren(); ++i) {
      const Teuchos::XMLObject& child = element.getChild(i);
      TAPER_VALIDATE(child.getTag() == "Parameter" || child.getTag() == "ParameterList",
                     file_ << ": <" << child.getTag()
                           << "> is unknown (a run file holds <ParameterList> and <Parameter>)");
      const std::string name = get_attribute(child, "name", prefix);
      const std::string path = prefix + name;
      TAPER_VALIDATE(!list.isParameter(name), file_ << ": " << path << " appears twice");
      if (child.getTag() == "ParameterList")
        read_section(child, path + "/", list.sublist(name));
      else
        put(list, name,
            convert(path, get_attribute(child, "type", path), get_attribute(child, "value", path)));
    }
  }

 private:
  std::string get_attribute(const Teuchos::XMLObject& element, const std::string& name,
                            const std::string& path) const {
    TAPER_VALIDATE(element.hasAttribute(name), file_ << ": a <" << element.getTag() << "> in "
                                                     << (path.empty() ? "the top level" : path)
                                                     << " lacks its attribute " << name);
    return element.getAttribute(name);
  }

  Value convert(const std::string& path, const std::string& type, const std::string& text) const {
    if (type.starts_with("Array(") && type.ends_with(")"))
      return convert_array(path, type.substr(6, type.size() - 7), text);
    const Value value = Value::of_text(type == "string" ? text : trim(text));
    if (type == "string") return value;
    if (type == "int" || type == "short" || type == "long long") {
      if (const auto integer = to_integer(value)) return Value::of_integer(*integer);
    } else if (type == "double" || type == "float") {
      if (const auto number = to_number(value)) return Value::of_number(*number);
    } else if (type == "bool") {
      if (const auto flag = to_flag(value)) return Value::of_flag(*flag);
    } else {
      TAPER_FAIL(ExitCode::kBadInput,
                 file_ << ": " << path << " has the type " << type
                       << " (known are int, long long, double, bool, string and Array of these)");
    }
    TAPER_FAIL(ExitCode::kBadInput, file_ << ": " << path << " is " << show_found(value)
                                          << " (its attribute type says " << type << ")");
  }

  // "{1, 2, 3}"
  Value convert_array(const std::string& path, const std::string& type,
                      const std::string& text) const {
    const std::string braced = trim(text);
    TAPER_VALIDATE(braced.size() >= 2 && braced.front() == '{' && braced.back() == '}',
                   file_ << ": " << path << " is \"" << text << "\" (an array is written {1, 2})");
    const std::string inside = trim(braced.substr(1, braced.size() - 2));
    std::vector<Value> items;
    for (std::size_t begin = 0; begin < inside.size();) {
      const std::size_t end = std::min(inside.find(',', begin), inside.size());
      items.push_back(convert(path, type, trim(inside.substr(begin, end - begin))));
      begin = end + 1;
    }
    return Value::of_list(std::move(items));
  }

  const std::string& file_;
};

}  // namespace

void read_xml(const std::string& text, const std::string& file, Teuchos::ParameterList& list) {
  Teuchos::XMLObject root;
  try {
    root = Teuchos::StringInputSource(text).getObject();
  } catch (const std::exception& problem) {
    TAPER_FAIL(ExitCode::kBadInput,
               file << ": cannot be read as XML (" << extract_reason(problem.what()) << ")");
  }
  TAPER_VALIDATE(!root.isEmpty() && root.getTag() == "ParameterList",
                 file << ": cannot be read as a run file (its first element must be "
                         "<ParameterList>)");
  XmlReader(file).read_section(root, "", list);
}

}  // namespace taper::param::detail
