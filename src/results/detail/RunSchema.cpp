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
  return {{"/", "git_hash", kText, "git commit from which the program was built"},
          {"/", "created", kText, "start of the run, `2030-01-02T03:04:05Z`", "UTC"},
          {"/build", "version", kText, "version of the program"},
          {"/build", "git_hash", kText, "git commit from which it was built"},
          {"/build", "compiler", kText, "compiler and its version"},
          {"/build", "build_type", kText, "CMake build type"},
          {"/build", "hdf5", kText, "version of the HDF5 library"},
          {"/machine", "host", kText, "host name of rank 0"},
          {"/machine", "hardware_threads", kText, "hardware threads of this host"},
          {"/machine", "ranks", kText, "ranks of the job", "-", kMaybe},
          {"/machine", "ranks_per_host", kText, "ranks on this host", "-", kMaybe},
          {"/machine", "threads_per_rank", kText, "threads of rank 0", "-", kMaybe},
          {"/machine", "instructions", kText,
           "widest set of instructions that kernels on rank 0's host use", "-", kMaybe},
          {"/machine", "gpu", kText, "name of the GPU of rank 0, in builds for GPUs", "-", kMaybe},
          {"/machine", "gpu_capability", kText, "its compute capability, `9.0`", "-", kMaybe},
          {"/timing", "columns", kText, "`min, mean, max over ranks`", "-", kMaybe},
          {"/<table>", "kind", kText, "`records`: a table with any number of rows per iteration",
           "-", kMaybe}};
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
           "parameters of the run, including defaults",
           ", as a run file in YAML"},
          steps_of("/metrics"),
          {"/metrics/<name>",
           kF64,
           {"rows"},
           "see below",
           "a metric",
           "; NaN if it was not measured",
           kMaybe},
          steps_of("/timing"),
          {"/timing/<phase>",
           kF64,
           {"rows", "3"},
           "s",
           "time of a phase",
           ": minimum, mean, maximum over ranks; NaN if the phase did not run",
           kMaybe},
          steps_of("/rollout"),
          {"/rollout/response_length",
           kI32,
           {"rows", "samples"},
           "token",
           "length of each response; -1: the iteration had fewer samples",
           "; ordered by group and sample",
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
           "one value per record",
           "; NaN, -1 or an empty text if the record has none",
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
          .records = generation_tables()};
}

}  // namespace

const FileSchema& run_schema() {
  static const FileSchema schema = make_schema();
  return schema;
}

}  // namespace taper
