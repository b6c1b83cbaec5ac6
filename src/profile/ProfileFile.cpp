// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileFile.hpp"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "io/AtomicFile.hpp"
#include "io/Hdf5File.hpp"
#include "profile/RunIdentity.hpp"
#include "results/FileSchema.hpp"

namespace taper {
namespace {

// One column of a table of records.
template <class Row, class T>
struct Column {
  const char* name;
  T Row::*member;
};

template <class Row, class Visit>
void for_columns(const Visit& visit) {
  const auto column = [&]<class T>(const char* name, T Row::*member) {
    visit(Column<Row, T>{name, member});
  };
  if constexpr (std::is_same_v<Row, StepSample>) {
    column("tp", &Row::tp);
    column("pair", &Row::pair);
    column("new_tokens", &Row::new_tokens);
    column("sequences", &Row::sequences);
    column("context", &Row::context);
    column("time_ns", &Row::time_ns);
    column("spread_ns", &Row::spread_ns);
    column("repeats", &Row::repeats);
  } else if constexpr (std::is_same_v<Row, MoveCost>) {
    column("pair", &Row::pair);
    column("latency_ns", &Row::latency_ns);
    column("ps_per_byte", &Row::ps_per_byte);
  } else if constexpr (std::is_same_v<Row, RendezvousCost>) {
    column("ranks", &Row::ranks);
    column("ns", &Row::ns);
  } else {
    static_assert(std::is_same_v<Row, FitError>);
    column("tp", &Row::tp);
    column("pair", &Row::pair);
    column("p50", &Row::p50);
    column("p90", &Row::p90);
    column("p95", &Row::p95);
    column("max", &Row::max);
  }
}

template <class T>
using Stored = std::conditional_t<std::is_same_v<T, std::int64_t>, std::int64_t, std::int32_t>;

template <class Row>
void write_table(Hdf5File& file, const std::string& group, const std::vector<Row>& rows) {
  for_columns<Row>([&]<class T>(const Column<Row, T>& column) {
    std::vector<Stored<T>> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(static_cast<Stored<T>>(row.*column.member));
    const std::string name = group + "/" + column.name;
    file.write(name, values, profile_schema().options_of(name));
  });
}

template <class Row>
std::vector<Row> read_table(const Hdf5File& file, const std::string& group) {
  std::vector<Row> rows;
  bool first = true;
  for_columns<Row>([&]<class T>(const Column<Row, T>& column) {
    const std::string name = group + "/" + column.name;
    const auto values = file.read<Stored<T>>(name).values;
    if (std::exchange(first, false)) rows.resize(values.size());
    TAPER_VALIDATE(values.size() == rows.size(), file.path()
                                                     << ": '" << name << "' has " << values.size()
                                                     << " values (not " << rows.size() << ")");
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i].*column.member = static_cast<T>(values[i]);
  });
  return rows;
}

LatencyProfile read_content(const Hdf5File& file) {
  LatencyProfile p;
  for (const auto& [part, facts] : kIdentityParts) {
    const std::string group = std::string("/identity/") + part;
    for (const auto& name : file.attribute_names(group))
      (p.identity.*facts)[name] = file.string_attribute(group, name);
  }
  p.ranks = static_cast<std::int32_t>(file.int_attribute("/", "ranks"));
  p.ranks_per_node = static_cast<std::int32_t>(file.int_attribute("/", "ranks_per_node"));
  if (file.has_attribute("/", "measured_percent"))
    p.measured_percent = static_cast<std::int32_t>(file.int_attribute("/", "measured_percent"));
  p.kv_bytes_per_position = file.int_attribute("/switching", "kv_bytes_per_position");
  p.block_size = static_cast<std::int32_t>(file.int_attribute("/switching", "block_size"));
  p.groups_ns = file.int_attribute("/switching", "groups_ns");
  p.weights_ns = file.int_attribute("/switching", "weights_ns");
  p.graphs_ns = file.int_attribute("/switching", "graphs_ns");
  p.steps = read_table<StepSample>(file, "/steps");
  p.moves = read_table<MoveCost>(file, "/switching/moves");
  p.rendezvous = read_table<RendezvousCost>(file, "/switching/rendezvous");
  p.fit_errors = read_table<FitError>(file, "/fit_errors");
  p.repeat_noise = read_table<FitError>(file, "/repeat_noise");
  return p;
}

}  // namespace

void write_profile(const std::filesystem::path& path, const LatencyProfile& p) {
  require_no_problems(p.problems(), path_text(path) + " is not written", ExitCode::kFailure);
  Hdf5File file = Hdf5File::create(part_path(path));
  write_format(file, profile_schema());
  file.set_attribute("/", "ranks", p.ranks);
  file.set_attribute("/", "ranks_per_node", p.ranks_per_node);
  file.set_attribute("/", "measured_percent", p.measured_percent);
  for (const auto& [part, facts] : kIdentityParts) {
    const std::string group = std::string("/identity/") + part;
    file.create_group(group);
    for (const auto& [name, text] : p.identity.*facts) file.set_attribute(group, name, text);
  }
  write_table(file, "/steps", p.steps);
  write_table(file, "/switching/moves", p.moves);
  write_table(file, "/switching/rendezvous", p.rendezvous);
  write_table(file, "/fit_errors", p.fit_errors);
  write_table(file, "/repeat_noise", p.repeat_noise);
  file.set_attribute("/switching", "kv_bytes_per_position", p.kv_bytes_per_position);
  file.set_attribute("/switching", "block_size", p.block_size);
  file.set_attribute("/switching", "groups_ns", p.groups_ns);
  file.set_attribute("/switching", "weights_ns", p.weights_ns);
  file.set_attribute("/switching", "graphs_ns", p.graphs_ns);
  file.set_attribute("/", "content_hash", static_cast<std::int64_t>(content_hash(p)));
  file.close();
  commit_file(part_path(path), path);
}

namespace {

LatencyProfile read_checked(const std::filesystem::path& path) {
  const Hdf5File file = Hdf5File::open_read(path);
  require_format(file, profile_schema(), "measure it again: taper profile");
  LatencyProfile p = read_content(file);
  TAPER_VALIDATE(
      static_cast<std::int64_t>(content_hash(p)) == file.int_attribute("/", "content_hash"),
      path_text(path) << " is damaged (its checksum differs); measure it again: taper "
                         "profile");
  require_no_problems(p.problems(), path_text(path));
  return p;
}

}  // namespace

LatencyProfile read_profile(const std::filesystem::path& path) {
  TAPER_VALIDATE(std::filesystem::exists(path),
                 "the profile " << path_text(path) << " does not exist; measure it: taper profile");
  try {
    return read_checked(path);
  } catch (const Error& e) {  // what HDF5 cannot read is bad input too
    throw Error(ExitCode::kBadInput, e.what());
  }
}

}  // namespace taper
