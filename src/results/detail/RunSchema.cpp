// SPDX-License-Identifier: Apache-2.0
//
// run.h5, as of RunFile.cpp.
#include "results/FileSchema.hpp"
#include "results/RunFile.hpp"

namespace taper {
namespace {

using enum StoredType;
constexpr Presence kMaybe = Presence::kMaybe;

std::vector<AttributeRule> attributes() {
  return {{"/", "git_hash", kText, "source of the program"},
          {"/", "created", kText, "start of the run, `2030-01-02T03:04:05Z`", "UTC"},
          {"/build", "version", kText, "of the program"},
          {"/build", "git_hash", kText, "its source"},
          {"/build", "compiler", kText, "and its version"},
          {"/build", "build_type", kText, "of CMake"},
          {"/build", "hdf5", kText, "version of the library"},
          {"/machine", "host", kText, "of rank 0"},
          {"/machine", "hardware_threads", kText, "of the host"},
          {"/machine", "ranks", kText, "of the job", "-", kMaybe},
          {"/machine", "ranks_per_host", kText, "on the host of rank 0", "-", kMaybe},
          {"/machine", "threads_per_rank", kText, "of rank 0", "-", kMaybe},
          {"/timing", "columns", kText, "`min, mean, max over ranks`", "-", kMaybe},
          {"/<table>", "kind", kText, "`records`: a table of records, for example decisions", "-",
           kMaybe}};
}

// The iterations of the rows of a table.
DatasetRule steps_of(const std::string& table) {
  return {table + "/step",         kI64, {"rows"}, "1",
          "iteration of each row", "",   kMaybe,   Order::kAscending};
}

std::vector<DatasetRule> datasets() {
  return {{"/config",
           kText,
           {},
           "1",
           "parameters of the run, defaults included",
           ": a run file in YAML again"},
          steps_of("/metrics"),
          {"/metrics/<name>",
           kF64,
           {"rows"},
           "see below",
           "a metric",
           "; NaN where it was not measured",
           kMaybe},
          steps_of("/timing"),
          {"/timing/<phase>",
           kF64,
           {"rows", "3"},
           "s",
           "time of a phase",
           ": minimum, mean, maximum over ranks; NaN where it did not run",
           kMaybe},
          steps_of("/rollout"),
          {"/rollout/response_length",
           kI32,
           {"rows", "samples"},
           "token",
           "length of each response; -1 where an iteration had fewer samples",
           "; in the order of (group, sample)",
           kMaybe,
           Order::kAny,
           true},
          {"/<table>/step",
           kI64,
           {"records"},
           "1",
           "iteration of each row",
           "; an iteration may have any number of records",
           kMaybe,
           Order::kNotDescending},
          {"/<table>/<column>",
           std::nullopt,
           {"records"},
           "as listed",
           "one value of the records",
           "; NaN, -1 or the empty text where one lacks it",
           kMaybe}};
}

FileSchema make_schema() {
  return {.format = "taper-run",
          .version = RunFile::kFormatVersion,
          .oldest = RunFile::kOldestVersion,
          .file = "run.h5",
          .scope = SizeScope::kTable,
          .attributes = attributes(),
          .datasets = datasets(),
          .records = layout_tables()};
}

}  // namespace

const FileSchema& run_schema() {
  static const FileSchema schema = make_schema();
  return schema;
}

}  // namespace taper
