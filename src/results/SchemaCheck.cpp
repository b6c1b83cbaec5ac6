// SPDX-License-Identifier: Apache-2.0
#include "results/SchemaCheck.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "results/FileSchema.hpp"

namespace taper {
namespace {

// "samples + 1": 1 more than the size "samples".
struct NamedSize {
  std::string name;
  std::int64_t more = 0;
};

// A dimension of a dataset that has a named size.
struct SizeUse {
  std::string dataset;
  NamedSize size;
  std::int64_t count = 0;  // of the name
};

NamedSize parse_size(const std::string& text) {
  const auto plus = text.find(" + ");
  if (plus == std::string::npos) return {text, 0};
  return {text.substr(0, plus), std::stoll(text.substr(plus + 3))};
}

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

// Why something that is plainly there cannot be read, without the name of the file.
std::string reason_of(const Error& error, const std::string& file) {
  std::string text = error.what();
  for (const std::string& start : {file + ": ", "HDF5 failed on " + file + " "})
    if (text.starts_with(start)) text = text.substr(start.size());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

class SchemaChecker {
 public:
  explicit SchemaChecker(const std::filesystem::path& path)
      : path_(path.string()), name_(path_text(path)) {}

  SchemaReport run() {
    attempt("it", [&] { check_file(Hdf5File::open_read(path_)); });
    return std::move(report_);
  }

 private:
  void fault(const std::string& text) { report_.faults.push_back(name_ + ": " + text); }

  // What HDF5 cannot read is a fault too, and so is what the library of C++ refuses: a name or a
  // size that the system cannot handle.
  template <class Look>
  bool attempt(const std::string& what, const Look& look) {
    try {
      look();
      return true;
    } catch (const Error& error) {
      fault(what + " cannot be read: " + reason_of(error, path_));
    } catch (const std::bad_alloc&) {
      fault(what + " cannot be read: out of memory");
    } catch (const std::exception& error) {
      fault(what + " cannot be read: " + error.what());
    }
    return false;
  }

  void check_file(const Hdf5File& file) {
    if (!find_schema(file)) return;
    for (const AttributeRule& rule : schema_->attributes)
      attempt(rule.object + " @" + rule.name, [&] { check_attribute(file, rule); });
    std::vector<std::string> names;
    if (!attempt("the list of datasets", [&] { names = file.datasets(); })) return;
    std::sort(names.begin(), names.end());  // also over groups, to be searched
    report_.datasets = static_cast<std::int64_t>(names.size());
    for (const std::string& name : names) attempt(name, [&] { check_dataset(file, name); });
    compare_sizes();
    check_missing(file, names);
  }

  bool find_schema(const Hdf5File& file) {
    if (!file.has_attribute("/", "format")) {
      fault("the attribute format of / is missing: not a file of Taper");
      return false;
    }
    const std::string format = file.string_attribute("/", "format");
    schema_ = schema_of(format);
    if (schema_ == nullptr) {
      fault("its format " + format + " is not one of Taper's");
      return false;
    }
    report_.format = format;
    report_.version = file.int_attribute("/", "format_version");
    if (report_.version >= schema_->oldest && report_.version <= schema_->version) return true;
    fault("format version " + std::to_string(report_.version) + " (this program knows " +
          versions_text(*schema_) + "); validate it with the program that wrote it");
    return false;
  }

  void check_attribute(const Hdf5File& file, const AttributeRule& rule) {
    const std::string what = "attribute " + rule.name + " of " + rule.object;
    if (rule.object.find('<') != std::string::npos) return;  // of tables, where it is used
    if (!file.exists(rule.object)) {
      if (rule.presence == Presence::kAlways) fault("group " + rule.object + " is missing");
      return;
    }
    std::vector<std::string> found;
    for (const std::string& name : file.attribute_names(rule.object))
      if (fits_pattern(rule.name, name)) found.push_back(name);
    if (found.empty() && rule.presence == Presence::kAlways)
      fault(what + " is missing (" + rule.meaning + ")");
    for (const std::string& name : found) {
      const StoredType type = file.attribute_type(rule.object, name);
      if (type != rule.type)
        fault("attribute " + name + " of " + rule.object + " is " + to_string(type) + " (" +
              to_string(rule.type) + " expected)");
    }
  }

  void check_dataset(const Hdf5File& file, const std::string& name) {
    const DatasetRule* rule = schema_->rule_of(name);
    if (rule == nullptr || !is_of_table(file, name, *rule)) {
      report_.notes.push_back(name_ + ": unknown dataset " + name +
                              " (not in the schema; readers skip it)");
      return;
    }
    if (rule->name == "/metrics/<name>" && !is_listed(name))
      report_.notes.push_back(name_ + ": " + name + " is not in the table of metrics");
    const StoredType type = file.type(name), expected = expected_type(name, *rule).value_or(type);
    if (type != expected)
      fault(name + " is " + to_string(type) + " (" + to_string(expected) + " expected)");
    check_sizes(name, file.dims(name), *rule);
    check_words(file, name, *rule);
    check_storage(file, name, *rule);
    file.require_readable(name);
    if (type == expected) check_order(file, name, *rule);
  }

  // Nothing if any will do. Before version 2 all columns of records were f64.
  std::optional<StoredType> expected_type(const std::string& name, const DatasetRule& rule) const {
    if (rule.type) return rule.type;
    if (report_.version < 2) return StoredType::kF64;
    const ColumnRule* column = column_rule(name);
    return column == nullptr ? std::nullopt : std::optional(column->type);
  }

  // Figures of named held-out sets describe themselves.
  static bool is_listed(const std::string& name) {
    return meaning_of(name) != nullptr || name.starts_with("/metrics/val/");
  }

  // A table of records says that it is one.
  bool is_of_table(const Hdf5File& file, const std::string& name, const DatasetRule& rule) const {
    if (!rule.name.starts_with("/<table>")) return true;
    const std::string group = name.substr(0, name.find('/', 1));
    return file.is_group(group) && file.has_attribute(group, "kind");
  }

  std::string key_of(const std::string& dataset, const std::string& size) const {
    switch (schema_->scope) {
      case SizeScope::kFile:
        return size;
      case SizeScope::kTable:
        return dataset.substr(0, dataset.find('/', 1)) + " " + size;
      case SizeScope::kLastName:
        return dataset.substr(dataset.find('/', 1)) + " " + size;
    }
    return size;
  }

  void check_sizes(const std::string& name, const Dims& dims, const DatasetRule& rule) {
    if (dims.size() != rule.shape.size()) {
      fault(name + " has " + count_text(static_cast<std::int64_t>(dims.size()), "dimension") +
            " (" + (rule.shape.empty() ? "a scalar" : join(rule.shape, " x ")) + " expected)");
      return;
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (is_number(rule.shape[i])) {
        if (std::to_string(dims[i]) != rule.shape[i])
          fault(name + " has " + std::to_string(dims[i]) + " in dimension " + std::to_string(i) +
                " (" + rule.shape[i] + " expected)");
        continue;
      }
      const NamedSize size = parse_size(rule.shape[i]);
      sizes_[key_of(name, size.name)].push_back({name, size, dims[i] - size.more});
    }
  }

  // Of the datasets that share a size, those that differ from most are wrong; if as many say one
  // thing as the other, from the iterations of the rows.
  void compare_sizes() {
    for (const auto& [key, uses] : sizes_) {
      std::map<std::int64_t, int> votes;
      for (const SizeUse& use : uses) votes[use.count] += use.dataset.ends_with("/step") ? 3 : 2;
      const auto most = std::max_element(votes.begin(), votes.end(),
                                         [](auto& x, auto& y) { return x.second < y.second; });
      const auto like = std::find_if(uses.begin(), uses.end(),
                                     [&](const SizeUse& use) { return use.count == most->first; });
      for (const SizeUse& use : uses)
        if (use.count != most->first)
          fault(use.dataset + " has " + std::to_string(use.count + use.size.more) +
                " entries, but " + std::to_string(most->first + use.size.more) + " are expected (" +
                like->dataset + " has " + std::to_string(like->count) + " " + use.size.name +
                (use.size.more > 0 ? ", and there is one more here)" : ")"));
    }
  }

  // Of exact rules the unit is told; of patterns by the table of metrics or of records.
  void check_words(const Hdf5File& file, const std::string& name, const DatasetRule& rule) {
    if (rule.units.empty()) return;
    std::string units =
        rule.name.find('<') == std::string::npos || rule.units == "s" || name.ends_with("/step")
            ? rule.units
            : "";
    if (const MetricMeaning* metric = meaning_of(name)) units = metric->units;
    if (const ColumnRule* column = column_rule(name)) units = column->units;
    if (!file.has_attribute(name, "units"))
      fault(name + " has no attribute units");
    else if (const std::string found = file.string_attribute(name, "units");
             found.empty() || (!units.empty() && found != units))
      fault(name + " has the unit '" + found + "'" +
            (units.empty() ? "" : " ('" + units + "' expected)"));
    if (!file.has_attribute(name, "description") ||
        file.string_attribute(name, "description").empty())
      fault(name + " has no attribute description");
  }

  void check_storage(const Hdf5File& file, const std::string& name, const DatasetRule& rule) {
    const Dims dims = file.dims(name);
    if (dims.empty() || product(dims) == 0) return;
    const Storage storage = file.storage(name);
    if (schema_->is_checksummed && !storage.is_checksummed)
      fault(name + " has no checksum (Fletcher-32)");
    if (rule.is_deflated && !storage.is_deflated) fault(name + " is not deflated");
  }

  void check_order(const Hdf5File& file, const std::string& name, const DatasetRule& rule) {
    if (rule.order == Order::kAny) return;
    const auto values = file.read<std::int64_t>(name).values;
    for (std::size_t i = 1; i < values.size(); ++i) {
      const bool is_wrong =
          rule.order == Order::kAscending ? values[i] <= values[i - 1] : values[i] < values[i - 1];
      if (!is_wrong) continue;
      fault(name + " goes from " + std::to_string(values[i - 1]) + " to " +
            std::to_string(values[i]) + " at row " + std::to_string(i) +
            (rule.order == Order::kAscending ? " (ascending expected)" : " (it must not descend)"));
      break;
    }
    if (rule.order == Order::kOffsets) check_offsets(file, name, values);
  }

  void check_offsets(const Hdf5File& file, const std::string& name,
                     const std::vector<std::int64_t>& offsets) {
    const std::string beside = name.substr(0, name.rfind('/')) + "/values";
    if (!file.exists(beside)) return;  // told as missing
    const Dims dims = file.dims(beside);
    const std::int64_t rows = dims.empty() ? 0 : dims.front();
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != rows)
      fault(name + " does not run from 0 to the " + std::to_string(rows) + " rows of " + beside);
  }

  void check_missing(const Hdf5File& file, const std::vector<std::string>& names) {
    const auto has = [&](const std::string& name) {
      return std::binary_search(names.begin(), names.end(), name);
    };
    for (const DatasetRule& rule : schema_->datasets) {
      const bool is_pattern = rule.name.find('<') != std::string::npos;
      if (!is_pattern && rule.presence == Presence::kAlways && !has(rule.name))
        fault("dataset " + rule.name + " is missing (" + rule.description + ")");
      // A scale goes with the columns, the offsets with the values.
      for (const auto& [part, whole] :
           {std::pair("/step", false), std::pair("/values", true), std::pair("/offsets", true)})
        if (!is_pattern && rule.presence == Presence::kMaybe && rule.name.ends_with(part) &&
            !has(rule.name) && has_below(names, rule.name.substr(0, rule.name.rfind('/'))))
          fault("dataset " + rule.name + " is missing (" + rule.description + ")");
    }
    check_tables(file, names);
    check_partners(names);
  }

  static bool has_below(const std::vector<std::string>& names, const std::string& group) {
    const auto at = std::lower_bound(names.begin(), names.end(), group + "/");
    return at != names.end() && at->starts_with(group + "/");
  }

  // The columns of the tables of records that are listed; `step` of all.
  void check_tables(const Hdf5File& file, const std::vector<std::string>& names) {
    if (schema_->records.empty()) return;
    for (const std::string& name : file.names()) {
      const std::string group = "/" + name;
      if (!file.is_group(group) || !file.has_attribute(group, "kind")) continue;
      if (!std::binary_search(names.begin(), names.end(), group + "/step"))
        fault("dataset " + group + "/step is missing (iteration of each row)");
    }
    for (const RecordTable& table : schema_->records)
      for (const ColumnRule& column : table.columns) {
        const std::string group = "/" + table.name, dataset = group + "/" + column.name;
        const bool is_pattern = column.name.find('<') != std::string::npos;
        if (!is_pattern && has_below(names, group) &&
            !std::binary_search(names.begin(), names.end(), dataset))
          fault("dataset " + dataset + " is missing (" + column.description + ")");
      }
  }

  // /first/x, /second/x and /hash/x of each /master/x.
  void check_partners(const std::vector<std::string>& names) {
    if (schema_->scope != SizeScope::kLastName) return;
    std::vector<std::string> groups;
    for (const DatasetRule& rule : schema_->datasets)
      if (const auto open = rule.name.find("/<"); open != std::string::npos)
        groups.push_back(rule.name.substr(0, open));
    std::map<std::string, std::size_t> count;
    for (const std::string& name : names)
      for (const std::string& group : groups)
        if (name.starts_with(group + "/")) ++count[name.substr(group.size())];
    for (const auto& [tensor, found] : count)
      for (const std::string& group : groups)
        if (found < groups.size() &&
            !std::binary_search(names.begin(), names.end(), group + tensor))
          fault("dataset " + group + tensor + " is missing");
  }

  std::string path_, name_;
  const FileSchema* schema_ = nullptr;
  SchemaReport report_;
  std::map<std::string, std::vector<SizeUse>> sizes_;
};

}  // namespace

SchemaReport check_schema(const std::filesystem::path& file) {
  return SchemaChecker(file).run();
}

}  // namespace taper
