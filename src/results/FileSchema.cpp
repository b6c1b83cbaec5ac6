// SPDX-License-Identifier: Apache-2.0
#include "results/FileSchema.hpp"

#include <algorithm>
#include <sstream>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

std::string code(const std::string& text) {
  return "`" + text + "`";
}

std::string shape_text(const std::vector<std::string>& shape) {
  return shape.empty() ? "scalar" : "(" + join(shape) + ")";
}

const char* order_text(Order order) {
  switch (order) {
    case Order::kAny:
      return "";
    case Order::kAscending:
      return ", ascending";
    case Order::kNotDescending:
      return ", not descending";
    case Order::kOffsets:
      return ", offsets";
  }
  return "";
}

std::string row(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

std::string attribute_row(const AttributeRule& rule) {
  const std::string kind = rule.presence == Presence::kMaybe ? "attribute, optional" : "attribute";
  return row({code(rule.object) + " " + code(rule.name), kind, to_string(rule.type), "-",
              rule.units, rule.meaning});
}

std::string dataset_row(const DatasetRule& rule) {
  std::string kind = "dataset";
  if (rule.presence == Presence::kMaybe) kind += ", optional";
  if (rule.is_deflated) kind += ", deflated";
  return row({code(rule.name), kind + order_text(rule.order),
              rule.type ? to_string(*rule.type) : "as listed", shape_text(rule.shape),
              rule.units.empty() ? "-" : rule.units, rule.description + rule.more});
}

std::string record_rows(const RecordTable& table) {
  std::string text = "\n" + code("/" + table.name) + ": " + table.meaning + ".\n\n" +
                     row({"column", "type", "unit", "meaning"}) + row({"---", "---", "---", "---"});
  for (const ColumnRule& column : table.columns)
    text += row({code(column.name), to_string(column.type), column.units, column.description});
  return text;
}

}  // namespace

std::string versions_text(const FileSchema& schema) {
  return (schema.oldest < schema.version ? std::to_string(schema.oldest) + " to " : "") +
         std::to_string(schema.version);
}

bool fits_pattern(std::string_view pattern, std::string_view path) {
  const auto open = pattern.find('<');
  if (open == std::string_view::npos) return pattern == path;
  if (!path.starts_with(pattern.substr(0, open))) return false;
  const auto close = pattern.find('>', open);
  const std::string_view rest = pattern.substr(close + 1);
  path.remove_prefix(open);
  // What the name stands for may have any length above 0.
  for (std::size_t length = 1; length <= path.size(); ++length)
    if (fits_pattern(rest, path.substr(length))) return true;
  return false;
}

const DatasetRule* FileSchema::rule_of(std::string_view dataset) const {
  const auto found = std::find_if(datasets.begin(), datasets.end(), [&](const DatasetRule& rule) {
    return fits_pattern(rule.name, dataset);
  });
  return found == datasets.end() ? nullptr : &*found;
}

DatasetOptions FileSchema::options_of(std::string_view dataset, int compression) const {
  const DatasetRule* rule = rule_of(dataset);
  TAPER_INSIST(rule != nullptr, "the schema of " << format << " has no " << dataset);
  return {.compression = rule->is_deflated ? compression : 0,
          .checksum = is_checksummed ? Checksum::kFletcher32 : Checksum::kNone,
          .units = rule->units,
          .description = rule->description};
}

const std::vector<const FileSchema*>& all_schemas() {
  static const std::vector<const FileSchema*> all{&run_schema(), &rollout_schema(),
                                                  &profile_schema(), &state_schema()};
  return all;
}

const FileSchema* schema_of(std::string_view format) {
  for (const FileSchema* schema : all_schemas())
    if (schema->format == format) return schema;
  return nullptr;
}

const ColumnRule* column_rule(std::string_view dataset) {
  for (const RecordTable& table : generation_tables()) {
    const std::string group = "/" + table.name + "/";
    if (!dataset.starts_with(group)) continue;
    for (const ColumnRule& column : table.columns)
      if (fits_pattern(column.name, dataset.substr(group.size()))) return &column;
  }
  return nullptr;
}

void write_format(Hdf5File& file, const FileSchema& schema) {
  file.set_attribute("/", "format", schema.format);
  file.set_attribute("/", "format_version", schema.version);
}

void require_format(const Hdf5File& file, const FileSchema& schema, const std::string& advice) {
  const std::string where = path_text(file.path());
  const std::string format =
      file.has_attribute("/", "format") ? file.string_attribute("/", "format") : "";
  TAPER_VALIDATE(
      format == schema.format,
      where << " is not a file of format " << schema.format << ", such as " << schema.file << " ("
            << (format.empty() ? "it has no attribute 'format'" : "its format is " + format)
            << "); check the path");
  const auto version = file.int_attribute("/", "format_version");
  TAPER_VALIDATE(version >= schema.oldest && version <= schema.version,
                 where << " has format version " << version << " (this program reads "
                       << versions_text(schema) << "); " << advice);
}

std::string to_markdown(const FileSchema& schema) {
  std::ostringstream out;
  out << row({"name", "kind", "type", "shape", "unit", "meaning"})
      << row({"---", "---", "---", "---", "---", "---"})
      << row({"`/` `format`", "attribute", "text", "-", "-", code(schema.format)})
      << row({"`/` `format_version`", "attribute", "i64", "-", "-",
              std::to_string(schema.version)});
  for (const AttributeRule& rule : schema.attributes) out << attribute_row(rule);
  for (const DatasetRule& rule : schema.datasets) out << dataset_row(rule);
  for (const RecordTable& table : schema.records) out << record_rows(table);
  return out.str();
}

}  // namespace taper
