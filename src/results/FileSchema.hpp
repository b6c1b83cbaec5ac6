// SPDX-License-Identifier: Apache-2.0
//
// What stands in each kind of HDF5 file: the one list that writers take units and descriptions
// from, that SchemaCheck.hpp holds files against, and that doc/results-schema.md shows
// (`taper inspect --schema`).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/Hdf5File.hpp"
#include "results/MetricTable.hpp"

namespace taper {

enum class Presence { kAlways, kMaybe };

// What the integers of a dataset do along it.
enum class Order {
  kAny,
  kAscending,      // each is larger than the one before
  kNotDescending,  // or equal
  kOffsets  // from 0, not descending, up to the number of rows of the dataset `values` beside it
};

// Whose datasets share the names of sizes: "rows" is one number in ...
enum class SizeScope {
  kFile,     // all of the file
  kTable,    // each group below the root
  kLastName  // each name below the groups: /master/x, /first/x
};

struct AttributeRule {
  std::string object;  // "/", "/build"; "/<table>" stands for any
  std::string name;    // "<fact>" stands for any
  StoredType type = StoredType::kText;
  std::string meaning;
  std::string units = "-";
  Presence presence = Presence::kAlways;
};

struct DatasetRule {
  std::string name;  // "/metrics/<name>": <...> stands for one part of the path or more
  std::optional<StoredType> type;  // empty: by the columns of RecordTable, any in other tables
  std::vector<std::string> shape;  // sizes by name, "samples", "samples + 1", or as numbers
  std::string units;               // the attribute; empty: the file's datasets have none
  std::string description;         // the attribute; for a pattern, what all have in common
  std::string more = {};           // what the documentation adds
  Presence presence = Presence::kAlways;
  Order order = Order::kAny;
  bool is_deflated = false;  // if it has elements
};

// A column of a table of records.
struct ColumnRule {
  std::string name;                    // "static_tp<N>_s" stands for any, and may be absent
  StoredType type = StoredType::kF64;  // kI64, kF64 or kText
  std::string units;
  std::string description;
};

// A table of records in a run file: /<name>/step and these columns.
struct RecordTable {
  std::string name;
  std::string meaning;  // of one record
  std::vector<ColumnRule> columns;
};

struct FileSchema {
  std::string format;  // attribute of the root
  int version = 1;     // the same, of what is written
  int oldest = 1;      // version that can be read
  std::string file;    // as people call it: "run.h5"
  SizeScope scope = SizeScope::kFile;
  bool is_checksummed = true;  // arrays with elements have Fletcher-32
  std::vector<AttributeRule> attributes = {};
  std::vector<DatasetRule> datasets = {};  // the first that fits a name counts
  std::vector<RecordTable> records = {};

  // Null if no rule fits the path.
  const DatasetRule* rule_of(std::string_view dataset) const;
  // The rule of a dataset as options of a writer; compression: deflate level if the rule
  // deflates. The name must be in the schema.
  DatasetOptions options_of(std::string_view dataset, int compression = 1) const;
};

const FileSchema& run_schema();
const FileSchema& rollout_schema();
const FileSchema& profile_schema();
const FileSchema& state_schema();
const std::vector<const FileSchema*>& all_schemas();
// By the attribute `format` of a file; null for others.
const FileSchema* schema_of(std::string_view format);

// The tables of a run file that have rows for generations.
const std::vector<RecordTable>& generation_tables();
// A column of a table of records, "/layout_switches/at_s"; null if it is not listed.
const ColumnRule* column_rule(std::string_view dataset);

// The versions that can be read: "2", "1 to 2".
std::string versions_text(const FileSchema& schema);
// Sets the attributes `format` and `format_version` of the root.
void write_format(Hdf5File& file, const FileSchema& schema);
// Throws Error that names the file if they are absent, of another format or of a version that
// cannot be read. advice: what to do about another version.
void require_format(const Hdf5File& file, const FileSchema& schema,
                    const std::string& advice = "use the program that wrote it");

// Whether a path is what a pattern stands for: "/metrics/a/b" is "/metrics/<name>".
bool fits_pattern(std::string_view pattern, std::string_view path);

// Tables for the documentation: attributes and datasets, then the tables of records if there are.
std::string to_markdown(const FileSchema& schema);

}  // namespace taper
