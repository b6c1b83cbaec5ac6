// SPDX-License-Identifier: Apache-2.0
#include "inspect/Hdf5Tree.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Hdf5File.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

constexpr std::size_t kShownValues = 6;
constexpr std::size_t kShownText = 60;

std::string show(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}
std::string show(std::int64_t value) {
  return std::to_string(value);
}
std::string show(std::uint64_t value) {
  return std::to_string(value);
}

// The first line, cut; quoted as in JSON.
std::string show(const std::string& text) {
  std::string line = text.substr(0, std::min(text.find('\n'), kShownText));
  if (line.size() < text.size()) line += "...";
  return Json(line).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
std::string show_values(const std::vector<T>& values) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(values.size(), kShownValues); ++i)
    words.push_back(show(values[i]));
  if (values.size() > kShownValues) words.push_back("...");
  return join(words);
}

// The stored type is not asked for: the first kind that holds it without loss is the right one.
template <class T>
bool try_numbers(const Hdf5File& file, const std::string& name, std::string& text,
                 std::vector<std::string>& problems) {
  try {
    text = show_values(file.read<T>(name).values);
    return true;
  } catch (const Error& e) {
    problems.emplace_back(e.what());
    return false;
  }
}

std::string show_dataset(const Hdf5File& file, const std::string& name, const Dims& dims) {
  std::string text;
  std::vector<std::string> problems;
  if (try_numbers<double>(file, name, text, problems) ||
      try_numbers<std::int64_t>(file, name, text, problems) ||
      try_numbers<std::uint64_t>(file, name, text, problems))
    return text;
  try {
    return dims.empty() ? show(file.read_string(name)) : show_values(file.read_strings(name));
  } catch (const Error& e) {
    problems.emplace_back(e.what());
  }
  TAPER_FAIL(ExitCode::kBadInput, name << " cannot be read: " << join(problems, "; "));
}

std::string show_attribute(const Hdf5File& file, const std::string& object,
                           const std::string& name) {
  try {
    return show(file.string_attribute(object, name));
  } catch (const Error&) {
  }
  try {
    return show(file.int_attribute(object, name));
  } catch (const Error&) {
  }
  return show(file.double_attribute(object, name));
}

// HDF5's own attributes of dimension scales say nothing to people.
bool is_bookkeeping(const std::string& attribute) {
  return attribute == "CLASS" || attribute == "NAME" || attribute == "REFERENCE_LIST" ||
         attribute == "DIMENSION_LIST" || attribute.starts_with("DIMENSION_LABELS");
}

void show_attributes(std::ostream& out, const Hdf5File& file, const std::string& object,
                     const std::string& indent) {
  for (const auto& name : file.attribute_names(object)) {
    if (is_bookkeeping(name) || name == "units" || name == "description") continue;
    out << indent << "@" << name << ": ";
    try {
      out << show_attribute(file, object, name) << '\n';
    } catch (const Error&) {
      out << "(neither a text nor a number)\n";
    }
  }
}

void show_group(std::ostream& out, const Hdf5File& file, const std::string& group, int depth) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  show_attributes(out, file, group, indent);
  for (const auto& name : file.names(group)) {
    const std::string path = (group == "/" ? "" : group) + "/" + name;
    if (file.is_group(path)) {
      out << indent << name << "/\n";
      show_group(out, file, path, depth + 1);
      continue;
    }
    const Dims dims = file.dims(path);
    std::vector<std::string> sizes;
    for (const auto d : dims) sizes.push_back(std::to_string(d));
    out << indent << name << " (" << join(sizes) << ")";
    if (file.has_attribute(path, "units"))
      out << " [" << file.string_attribute(path, "units") << "]";
    out << ": " << show_dataset(file, path, dims) << '\n';
    if (file.has_attribute(path, "description"))
      out << indent << "    " << file.string_attribute(path, "description") << '\n';
    show_attributes(out, file, path, indent + "    ");
  }
}

}  // namespace

std::string hdf5_tree(const std::filesystem::path& file) {
  std::ostringstream out;
  try {
    show_group(out, Hdf5File::open_read(file), "/", 1);
  } catch (const Error& e) {
    TAPER_FAIL(ExitCode::kBadInput, path_text(file)
                                        << " is damaged or not an HDF5 file (" << e.what() << ")");
  }
  return out.str();
}

}  // namespace taper
