// SPDX-License-Identifier: Apache-2.0
#include "results/RunFile.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Version.hpp"
#include "io/AtomicFile.hpp"
#include "results/FileSchema.hpp"
#include "results/MetricTable.hpp"
#include "results/detail/OldRecords.hpp"

namespace taper {

namespace {

constexpr const char* kRecordsKind = "records";

// Of names that no table lists, such as columns of records.
std::string units_of(const std::string& dataset) {
  if (dataset.starts_with("/timing/") || dataset.ends_with("_s")) return "s";
  if (dataset.find("_bytes") != std::string::npos) return "byte";
  return "1";
}

RecordColumn read_column(const Hdf5File& file, const std::string& dataset) {
  switch (file.type(dataset)) {
    case StoredType::kText:
      return file.read_strings(dataset);
    case StoredType::kI64:
      return file.read<std::int64_t>(dataset).values;
    default:
      return file.read<double>(dataset).values;
  }
}

void write_column(Hdf5File& file, const std::string& dataset, const RecordColumn& column,
                  DatasetOptions options) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&column)) {
    options.compression = 1;  // all are as long as the longest, a layout of very many groups
    file.write_strings(dataset, *texts, options);
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&column)) {
    file.write(dataset, *integers, options);
  } else {
    file.write(dataset, std::get<std::vector<double>>(column), options);
  }
}

void require_values(const std::filesystem::path& path, const std::string& dataset,
                    std::size_t values, std::size_t expected) {
  TAPER_VALIDATE(values == expected, path_text(path) << ": " << dataset << " has " << values
                                                     << " values (" << expected << " expected)");
}

std::vector<std::int64_t> read_steps(const Hdf5File& file, const std::string& group) {
  auto steps = file.read<std::int64_t>(group + "/step").values;
  TAPER_VALIDATE(std::is_sorted(steps.begin(), steps.end()),
                 file.path() << ": " << group << "/step is not in ascending order (damaged file?)");
  return steps;
}

}  // namespace

RunFile::RunFile(std::filesystem::path path)
    : path_(std::move(path)),
      created_(utc_text()),
      claimed_{"/config", "/build", "/machine", "/rollout/step"} {
  set_machine({});
}

void RunFile::set_machine(std::map<std::string, std::string> facts) {
  machine_ = std::move(facts);
  machine_["host"] = host_name();
  machine_["hardware_threads"] = std::to_string(std::thread::hardware_concurrency());
}

void RunFile::claim(const std::string& group, const std::string& name) {
  const std::string dataset = group + "/" + name;
  if (claimed_.count(dataset) > 0) return;
  const std::string where = path_text(path_) + ": " + dataset;
  TAPER_VALIDATE(!name.empty() && dataset.back() != '/' &&
                     dataset.find("//") == std::string::npos &&
                     (dataset + "/").find("/./") == std::string::npos,
                 where << " is not a valid name (words joined by single slashes are expected)");
  TAPER_VALIDATE(name != "step", where << " is taken (it holds the iterations); use another name");
  for (auto slash = dataset.find('/', 1); slash != std::string::npos;
       slash = dataset.find('/', slash + 1)) {
    TAPER_VALIDATE(claimed_.count(dataset.substr(0, slash)) == 0,
                   where << " cannot be stored (" << dataset.substr(0, slash)
                         << " is a dataset, not a group); rename one of the two");
  }
  const auto below = claimed_.lower_bound(dataset + "/");
  TAPER_VALIDATE(
      below == claimed_.end() || !below->starts_with(dataset + "/"),
      where << " cannot be stored (it is the group of " << *below << "); rename one of the two");
  claimed_.insert(dataset);
}

void RunFile::describe(const std::string& dataset, std::string units, std::string description) {
  meanings_[dataset] = {std::move(units), std::move(description)};
}

void RunFile::add_metrics(std::int64_t iteration, const MetricValues& values) {
  for (const auto& [name, value] : values) claim("/metrics", name);
  metrics_.begin_row(iteration, path_text(path_) + ": /metrics");
  for (const auto& [name, value] : values) metrics_.set(name, value);
}

void RunFile::add_timing(std::int64_t iteration, const PhaseTiming& timing) {
  claim("/timing", timing.phase);
  timing_.begin_row(iteration, path_text(path_) + ": /timing");
  timing_.set(timing.phase, std::vector<double>{timing.min, timing.mean, timing.max});
}

void RunFile::add_lengths(std::int64_t iteration, std::span<const int> lengths) {
  TAPER_INSIST(lengths_.empty() || iteration > lengths_.back().first,
               path_text(path_) << ": /rollout/response_length: iteration " << iteration
                                << " after " << lengths_.back().first << " without truncate_after");
  claim("/rollout", "response_length");
  lengths_.emplace_back(iteration, std::vector<std::int32_t>(lengths.begin(), lengths.end()));
}

void RunFile::add_record(const std::string& table, std::int64_t iteration, const RecordRow& row) {
  TAPER_VALIDATE(table != "metrics" && table != "timing" && table != "rollout",
                 path_text(path_) << ": table " << table
                                  << " is taken (it is not one of records); use another name");
  TAPER_VALIDATE(
      table.find('/') == std::string::npos,
      path_text(path_) << ": table " << table << " is not a valid name (it contains a slash)");
  for (const auto& [name, value] : row) claim("/" + table, name);
  records_[table].add(iteration, row, path_text(path_) + ": /" + table);
}

void RunFile::truncate_after(std::int64_t iteration) {
  metrics_.truncate_after(iteration);
  timing_.truncate_after(iteration);
  for (auto& [name, rows] : records_) rows.truncate_after(iteration);
  std::erase_if(lengths_, [&](const auto& row) { return row.first > iteration; });
}

// --- saving

DatasetOptions RunFile::options_for(const std::string& dataset) const {
  if (const MetricMeaning* metric = meaning_of(dataset))
    return {.units = metric->units, .description = metric->description};
  if (const ColumnRule* column = column_rule(dataset))
    return {.units = column->units, .description = column->description};
  const auto known = meanings_.find(dataset);
  Meaning meaning = known != meanings_.end() ? known->second : Meaning{};
  if (meaning.units.empty()) meaning.units = units_of(dataset);
  if (meaning.description.empty()) meaning.description = dataset.substr(dataset.find('/', 1) + 1);
  return {.units = meaning.units, .description = meaning.description};
}

void RunFile::write_facts(Hdf5File& file) const {
  const BuildInfo build = build_info();
  write_format(file, run_schema());
  file.set_attribute("/", "git_hash", build.git_hash);
  file.set_attribute("/", "created", created_);
  file.write_string("/config", config_, run_schema().options_of("/config"));
  file.create_group("/build");
  file.set_attribute("/build", "version", build.version);
  file.set_attribute("/build", "git_hash", build.git_hash);
  file.set_attribute("/build", "compiler", build.compiler);
  file.set_attribute("/build", "build_type", build.build_type);
  file.set_attribute("/build", "hdf5", H5_VERS_INFO);
  file.create_group("/machine");
  for (const auto& [name, value] : machine_) file.set_attribute("/machine", name, value);
}

void RunFile::write_steps(Hdf5File& file, const std::string& group,
                          const std::vector<std::int64_t>& steps) const {
  file.write(group + "/step", steps, run_schema().options_of(group + "/step"));
}

void RunFile::write_table(Hdf5File& file, const std::string& group,
                          const detail::StepTable& table) const {
  if (table.empty()) return;
  write_steps(file, group, table.steps());
  Dims dims = {static_cast<std::int64_t>(table.steps().size())};
  if (table.width() > 1) dims.push_back(static_cast<std::int64_t>(table.width()));
  for (const auto& name : table.columns()) {
    const std::string dataset = group + "/" + name;
    file.write<double>(dataset, table.column(name), dims, options_for(dataset));
    file.attach_scale(dataset, 0, group + "/step", "step");
  }
}

void RunFile::write_records(Hdf5File& file, const std::string& group,
                            const RecordRows& rows) const {
  if (rows.empty()) return;
  write_steps(file, group, rows.steps());
  for (const auto& [name, column] : rows.columns()) {
    const std::string dataset = group + "/" + name;
    write_column(file, dataset, column, options_for(dataset));
    file.attach_scale(dataset, 0, group + "/step", "step");
  }
  file.set_attribute(group, "kind", kRecordsKind);
}

void RunFile::write_lengths(Hdf5File& file) const {
  if (lengths_.empty()) return;
  std::size_t samples = 0;
  std::vector<std::int64_t> steps;
  for (const auto& [iteration, lengths] : lengths_) {
    steps.push_back(iteration);
    samples = std::max(samples, lengths.size());
  }
  std::vector<std::int32_t> table;
  for (const auto& [iteration, lengths] : lengths_) {
    table.insert(table.end(), lengths.begin(), lengths.end());
    table.resize(table.size() + samples - lengths.size(), -1);
  }
  write_steps(file, "/rollout", steps);
  file.write<std::int32_t>(
      "/rollout/response_length", table,
      {static_cast<std::int64_t>(steps.size()), static_cast<std::int64_t>(samples)},
      run_schema().options_of("/rollout/response_length"));
  file.attach_scale("/rollout/response_length", 0, "/rollout/step", "step");
}

void RunFile::save() {
  const auto start = std::chrono::steady_clock::now();
  Hdf5File file = Hdf5File::create_in_memory(path_.string());
  write_facts(file);
  write_table(file, "/metrics", metrics_);
  write_table(file, "/timing", timing_);
  if (file.exists("/timing")) file.set_attribute("/timing", "columns", "min, mean, max over ranks");
  write_lengths(file);
  for (const auto& [name, rows] : records_) write_records(file, "/" + name, rows);
  AtomicFile target(path_);
  target.write(file.image());
  target.commit();
  saved_ = std::chrono::steady_clock::now();
  save_s_ = std::chrono::duration<double>(*saved_ - start).count();
}

bool RunFile::save_if_due(double seconds) {
  const auto now = std::chrono::steady_clock::now();
  const double due = std::max(seconds, save_s_ / kMostShare);
  if (saved_ && std::chrono::duration<double>(now - *saved_).count() < due) return false;
  save();
  return true;
}

// --- loading

void RunFile::load_facts(const Hdf5File& file) {
  created_ = file.string_attribute("/", "created");
  config_ = file.read_string("/config");
  machine_.clear();
  for (const auto& name : file.attribute_names("/machine"))
    machine_[name] = file.string_attribute("/machine", name);
}

// Claims the columns of a table, and keeps what they mean. Returns their names.
std::vector<std::string> RunFile::load_columns(const Hdf5File& file, const std::string& group) {
  std::vector<std::string> names;
  for (const auto& dataset : file.datasets(group)) {
    const std::string name = dataset.substr(group.size() + 1);
    if (name == "step") continue;
    claim(group, name);
    describe(dataset, file.string_attribute(dataset, "units"),
             file.string_attribute(dataset, "description"));
    names.push_back(name);
  }
  return names;
}

void RunFile::load_table(const Hdf5File& file, const std::string& group, detail::StepTable& table) {
  if (!file.exists(group + "/step")) return;
  const auto steps = read_steps(file, group);
  std::map<std::string, std::vector<double>> columns;
  for (const auto& name : load_columns(file, group)) {
    const std::string dataset = group + "/" + name;
    auto values = file.read<double>(dataset).values;
    require_values(path_, dataset, values.size(), steps.size() * table.width());
    columns[name] = std::move(values);
  }
  table.load(steps, std::move(columns));
}

void RunFile::load_records(const Hdf5File& file, const std::string& group, RecordRows& rows) {
  if (!file.exists(group + "/step")) return;
  const auto steps = read_steps(file, group);
  const int known = std::atoi(machine("ranks").c_str());
  std::map<std::string, RecordColumn> columns;
  for (const auto& name : load_columns(file, group)) {
    const std::string dataset = group + "/" + name;
    RecordColumn column = detail::upgraded(dataset, read_column(file, dataset), known);
    require_values(path_, dataset, std::visit([](auto& v) { return v.size(); }, column),
                   steps.size());
    columns[name] = std::move(column);
  }
  rows.load(steps, std::move(columns));
}

void RunFile::load_lengths(const Hdf5File& file) {
  if (!file.exists("/rollout/response_length")) return;
  const auto steps = read_steps(file, "/rollout");
  const auto table = file.read<std::int32_t>("/rollout/response_length");
  TAPER_VALIDATE(table.dims.size() == 2 && table.dims[0] == static_cast<std::int64_t>(steps.size()),
                 path_text(path_) << ": /rollout/response_length does not match /rollout/step");
  claim("/rollout", "response_length");
  const auto samples = static_cast<std::ptrdiff_t>(table.dims[1]);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto begin = table.values.begin() + static_cast<std::ptrdiff_t>(i) * samples;
    lengths_.emplace_back(steps[i],
                          std::vector<std::int32_t>(begin, std::find(begin, begin + samples, -1)));
  }
}

RunFile RunFile::load(const std::filesystem::path& path) {
  const Hdf5File file = Hdf5File::open_read(path);
  require_format(file, run_schema());
  RunFile run(path);
  run.load_facts(file);
  run.load_table(file, "/metrics", run.metrics_);
  run.load_table(file, "/timing", run.timing_);
  run.load_lengths(file);
  for (const auto& name : file.names()) {
    if (!file.is_group(name) || !file.has_attribute(name, "kind")) continue;
    run.load_records(file, "/" + name, run.records_[name]);
  }
  return run;
}

RunFile RunFile::rebuild_from(const std::filesystem::path& path,
                              const std::filesystem::path& metrics_log) {
  const auto records = read_metrics_log(metrics_log);
  RunFile run(path);
  try {
    run = load(path);
  } catch (const Error& error) {
    TAPER_WARN("only the metrics are rebuilt: " << error.what());
  }
  run.metrics_ = detail::StepTable();
  std::erase_if(run.claimed_,
                [](const std::string& dataset) { return dataset.starts_with("/metrics/"); });
  for (const auto& record : records) run.add_metrics(record.iteration, record.values);
  return run;
}

}  // namespace taper
