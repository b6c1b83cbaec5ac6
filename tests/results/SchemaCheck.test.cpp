// SPDX-License-Identifier: Apache-2.0
#include "results/SchemaCheck.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "results/FileSchema.hpp"
#include "results/RolloutFile.hpp"
#include "results/RunFile.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using test::Scratch;
using test::slurp;
using test::spill;

namespace {

void write_run(const std::filesystem::path& path) {
  RunFile run(path);
  run.set_config("Run:\n  Seed: 1\n");
  for (int i = 1; i <= 400; ++i) {
    run.add_metrics(i, {{"actor/lr", 0.25 * i}, {"critic/score/mean", 1.0 / i}});
    run.add_timing(i, {"gen", 1, 2, 3});
    run.add_lengths(i, std::vector<int>{i, i + 1});
  }
  run.add_record("decisions", 2, {{"tp", 2}, {"layout", "2x1"}});
  run.save();
}

void write_samples(const std::filesystem::path& path) {
  std::vector<RolloutRecord> records;
  for (int i = 0; i < 3; ++i)
    records.push_back({i, 0, 1, {1, 2, 3}, {-0.5f, -1}, {}, {}, {1}, 0.5, FinishReason::kEos, {}});
  write_rollouts(path, MPI_COMM_SELF, records, {.iteration = 2, .reward_names = {"score"}});
}

// Writes one dataset, as a plain file of the library's would.
template <class T>
void replace(const std::filesystem::path& path, const std::string& name,
             const std::vector<T>& values, const DatasetOptions& options) {
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(id >= 0);
  if (H5Lexists(id, name.c_str(), H5P_DEFAULT) > 0) H5Ldelete(id, name.c_str(), H5P_DEFAULT);
  const hsize_t size = values.size();
  const hid_t space = H5Screate_simple(1, &size, nullptr);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 1, &size);
  if (options.compression > 0) H5Pset_deflate(list, 1);
  if (options.checksum == Checksum::kFletcher32) H5Pset_fletcher32(list);
  const hid_t type = detail::native_type<T>();
  const hid_t data = H5Dcreate2(id, name.c_str(), type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  const auto set = [&](const char* attribute, const std::string& text) {
    const hid_t words = H5Tcopy(H5T_C_S1);
    H5Tset_size(words, text.size() + 1);
    const hid_t scalar = H5Screate(H5S_SCALAR);
    const hid_t made = H5Acreate2(data, attribute, words, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(made, words, text.c_str());
    H5Aclose(made);
    H5Sclose(scalar);
    H5Tclose(words);
  };
  if (!options.units.empty()) set("units", options.units);
  if (!options.description.empty()) set("description", options.description);
  H5Dclose(data);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(id);
}

void remove(const std::filesystem::path& path, const std::string& name) {
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(id >= 0);
  REQUIRE(H5Ldelete(id, name.c_str(), H5P_DEFAULT) >= 0);
  H5Fclose(id);
}

void set_version(const std::filesystem::path& path, std::int64_t version) {
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(id >= 0);
  const hid_t attribute = H5Aopen(id, "format_version", H5P_DEFAULT);
  REQUIRE(H5Awrite(attribute, H5T_NATIVE_INT64, &version) >= 0);
  H5Aclose(attribute);
  H5Fclose(id);
}

// As version 1 had them: numbers in all columns.
void write_old_records(RunFile& run) {
  for (const RecordTable& table : generation_tables()) {
    RecordRow row;
    for (const ColumnRule& column : table.columns)
      if (column.name.find('<') == std::string::npos) row.emplace_back(column.name, 11.0);
    run.add_record(table.name, 1, row);
  }
}

// The one fault of a file names it and has these words.
void check_one_fault(const std::filesystem::path& path, const std::vector<std::string>& words) {
  const SchemaReport report = check_schema(path);
  CAPTURE(report.faults);
  REQUIRE(report.faults.size() == 1);
  CHECK_THAT(report.faults.front(), ContainsSubstring(path.string()));
  CHECK(report.faults.front().find('\n') == std::string::npos);
  for (const auto& word : words) CHECK_THAT(report.faults.front(), ContainsSubstring(word));
}

}  // namespace

TEST_CASE("what the writers write is as in the schema") {
  const Scratch scratch;
  write_run(scratch / "run.h5");
  SchemaReport report = check_schema(scratch / "run.h5");
  CHECK(report.faults == std::vector<std::string>{});
  CHECK(report.notes == std::vector<std::string>{});
  CHECK(report.format == "taper-run");
  CHECK(report.version == 2);
  CHECK(report.datasets == 11);
  RunFile(scratch / "empty.h5").save();
  CHECK(check_schema(scratch / "empty.h5").faults.empty());

  write_samples(scratch / "rollouts.h5");
  report = check_schema(scratch / "rollouts.h5");
  CHECK(report.faults == std::vector<std::string>{});
  CHECK(report.datasets == 14);
  const Hdf5File file = Hdf5File::open_read(scratch / "rollouts.h5");
  for (const char* name : {"/tokens/values", "/log_probs/values", "/rewards", "/advantage"}) {
    CHECK(file.storage(name).is_checksummed);
    CHECK(file.storage(name).is_deflated);
  }
}

TEST_CASE("what is missing from a file is named") {
  const Scratch scratch;
  const auto run = scratch / "run.h5", rollouts = scratch / "rollouts.h5";
  for (const char* name : {"/advantage", "/tokens/offsets", "/log_probs/values", "/reward_names"}) {
    write_samples(rollouts);
    remove(rollouts, name);
    check_one_fault(rollouts, {std::string("dataset ") + name + " is missing"});
  }
  for (const char* name : {"/config", "/metrics/step", "/timing/step", "/rollout/step"}) {
    write_run(run);
    remove(run, name);
    check_one_fault(run, {std::string("dataset ") + name + " is missing"});
  }
  write_run(run);
  remove(run, "/decisions/step");
  check_one_fault(run, {"dataset /decisions/step is missing"});
  write_run(run);
  remove(run, "/build");
  const SchemaReport report = check_schema(run);
  REQUIRE(!report.faults.empty());
  CHECK_THAT(report.faults.front(), ContainsSubstring("group /build is missing"));
}

TEST_CASE("wrong types, sizes, units, filters and orders are named") {
  const Scratch scratch;
  const auto path = scratch / "rollouts.h5";
  const auto good = rollout_schema().options_of("/advantage");
  const auto check = [&](const std::function<void()>& damage,
                         const std::vector<std::string>& words) {
    write_samples(path);
    damage();
    check_one_fault(path, words);
  };
  check(
      [&] {
        replace<float>(path, "/advantage", {1, 2, 3}, good);
      },
      {"/advantage is f32 (f64 expected)"});
  check(
      [&] {
        replace<double>(path, "/advantage", {1, 2}, good);
      },
      {"/advantage has 2 entries, but 3 are expected (/finish has 3 samples)"});
  DatasetOptions other = good;
  other.units = "s";
  check(
      [&] {
        replace<double>(path, "/advantage", {1, 2, 3}, other);
      },
      {"/advantage has the unit 's' ('1' expected)"});
  other = good;
  other.description.clear();
  check(
      [&] {
        replace<double>(path, "/advantage", {1, 2, 3}, other);
      },
      {"/advantage has no attribute description"});
  other = good;
  other.checksum = Checksum::kNone;
  check(
      [&] {
        replace<double>(path, "/advantage", {1, 2, 3}, other);
      },
      {"/advantage has no checksum"});
  other = good;
  other.compression = 0;
  check(
      [&] {
        replace<double>(path, "/advantage", {1, 2, 3}, other);
      },
      {"/advantage is not deflated"});
  check(
      [&] {
        replace<std::int64_t>(path, "/tokens/offsets", {0, 3, 6, 8}, good);
      },
      {"/tokens/offsets does not run from 0 to the 9 rows of /tokens/values"});
  check(
      [&] {
        replace<std::int64_t>(path, "/tokens/offsets", {0, 6, 3, 9}, good);
      },
      {"/tokens/offsets goes from 6 to 3 at row 2"});

  const auto run = scratch / "run.h5";
  write_run(run);
  std::vector<std::int64_t> steps(400);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<std::int64_t>(i) + 1;
  steps[7] = steps[6];
  replace<std::int64_t>(run, "/metrics/step", steps, run_schema().options_of("/metrics/step"));
  check_one_fault(run, {"/metrics/step goes from 7 to 7 at row 7 (ascending expected)"});
}

TEST_CASE("a run file of version 1 is right as it is, and becomes version 2 when it goes on") {
  const Scratch scratch;
  const auto path = scratch / "run.h5";
  RunFile old(path);
  write_old_records(old);
  old.save();
  std::vector<std::string> faults = check_schema(path).faults;
  CHECK(std::count(faults.begin(), faults.end(),
                   path.string() + ": /layout_switches/to is f64 (text expected)") == 1);
  set_version(path, 1);
  CHECK(check_schema(path).faults == std::vector<std::string>{});
  RunFile::load(path).save();
  const SchemaReport report = check_schema(path);
  CHECK(report.faults == std::vector<std::string>{});
  CHECK(report.version == 2);
  CHECK(Hdf5File::open_read(path).read_strings("/layout_switches/to") ==
        std::vector<std::string>{"1x2"});
}

TEST_CASE("unknown datasets are named, and are no fault") {
  const Scratch scratch;
  const auto path = scratch / "run.h5";
  write_run(path);
  replace<double>(path, "/mine", {1}, {});
  RunFile run = RunFile::load(path);
  const SchemaReport report = check_schema(path);
  CHECK(report.faults.empty());
  REQUIRE(report.notes.size() == 1);
  CHECK_THAT(report.notes.front(), ContainsSubstring("unknown dataset /mine"));
  run.add_metrics(401, {{"my/own", 1}});
  run.save();
  REQUIRE(check_schema(path).notes.size() == 1);
  CHECK_THAT(check_schema(path).notes.front(),
             ContainsSubstring("/metrics/my/own is not in the table of metrics"));
}

TEST_CASE("a flipped bit in a chunk is found by its checksum") {
  const Scratch scratch;
  const auto path = scratch / "run.h5";
  write_run(path);
  std::string bytes = slurp(path);
  const double value = 0.25 * 300;  // of actor/lr
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  spill(path, bytes);
  check_one_fault(path, {"/metrics/actor/lr cannot be read"});
}

TEST_CASE("what the system cannot open is a fault") {
  const Scratch scratch;
  check_one_fault(scratch / std::string(300, 'x'), {"cannot be read", "File name too long"});
}

TEST_CASE("truncated files and files of others are one fault") {
  const Scratch scratch;
  const auto path = scratch / "run.h5";
  write_run(path);
  const std::string bytes = slurp(path);
  for (const std::size_t size :
       {bytes.size() - 1, bytes.size() / 2, std::size_t{100}, std::size_t{0}}) {
    CAPTURE(size);
    spill(path, bytes.substr(0, size));
    check_one_fault(path, {"cannot be read"});
  }
  {
    Hdf5File file = Hdf5File::create(path);
    file.set_attribute("/", "units", "m");
  }
  check_one_fault(path, {"format of / is missing"});
  {
    Hdf5File file = Hdf5File::create(path);
    file.set_attribute("/", "format", "another");
  }
  check_one_fault(path, {"its format another is not one of Taper's"});
  {
    Hdf5File file = Hdf5File::create(path);
    write_format(file, run_schema());
    file.set_attribute("/", "format_version", 9);
  }
  check_one_fault(path, {"format version 9 (this program knows 1 to 2)"});
}
