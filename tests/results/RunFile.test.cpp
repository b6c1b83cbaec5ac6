// SPDX-License-Identifier: Apache-2.0
#include "results/RunFile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::Dims;
using taper::Error;
using taper::Hdf5File;
using taper::RunFile;
using taper::StoredType;
using taper::test::Scratch;
using taper::test::slurp;
using taper::test::spill;

namespace {

void fill(RunFile& run, std::int64_t from, std::int64_t to) {
  for (auto i = from; i < to; ++i) {
    const auto x = static_cast<double>(i);
    run.add_metrics(i, {{"timing_s/gen", 0.5 * x}, {"actor/loss", -x}});
    if (i % 2 == 0) run.add_metrics(i, {{"val/score", x}});
    run.add_timing(i, {"gen", x, x + 1, x + 2});
    run.add_timing(i, {"train/forward", x, x, x});
    run.add_lengths(i, std::vector<int>(static_cast<std::size_t>(2 + i % 2), static_cast<int>(i)));
    for (int k = 0; k < 2; ++k)
      run.add_record("decisions", i, {{"tp/before", 1}, {"tp/after", 2.0 + k}, {"to", "2x1"}});
  }
}

RunFile sample(const std::filesystem::path& path, std::int64_t iterations) {
  RunFile run(path);
  run.set_config("Rollout:\n  Temperature: 1\n");
  run.set_machine({{"ranks", "4"}});
  run.describe("/metrics/actor/loss", "1", "policy loss");
  fill(run, 0, iterations);
  return run;
}

}  // namespace

TEST_CASE("a run file describes itself") {
  const Scratch scratch;
  const auto path = scratch / "run.h5";
  sample(path, 4).save();
  const auto file = Hdf5File::open_read(path);
  CHECK(file.string_attribute("/", "format") == "taper-run");
  CHECK(file.int_attribute("/", "format_version") == RunFile::kFormatVersion);
  CHECK_FALSE(file.string_attribute("/", "git_hash").empty());
  CHECK(file.string_attribute("/", "created").size() == 20);
  CHECK(file.read_string("/config") == "Rollout:\n  Temperature: 1\n");
  CHECK(file.string_attribute("/machine", "ranks") == "4");
  CHECK_FALSE(file.string_attribute("/build", "compiler").empty());
  for (const auto& name : file.datasets()) {
    CAPTURE(name);
    CHECK_FALSE(file.string_attribute(name, "units").empty());
    CHECK_FALSE(file.string_attribute(name, "description").empty());
  }
  CHECK(file.string_attribute("/metrics/timing_s/gen", "units") == "s");
  CHECK(file.string_attribute("/metrics/actor/loss", "description") == "policy loss");
}

TEST_CASE("what was added stands in the file") {
  const Scratch scratch;
  const auto path = scratch / "run.h5";
  sample(path, 4).save();
  const auto file = Hdf5File::open_read(path);
  CHECK(file.read<std::int64_t>("/metrics/step").values == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(file.read<double>("/metrics/timing_s/gen").values == std::vector<double>{0, 0.5, 1, 1.5});
  const auto score = file.read<double>("/metrics/val/score").values;
  CHECK(score[2] == 2);
  CHECK(std::isnan(score[3]));
  CHECK(file.read<double>("/timing/train/forward").dims == Dims{4, 3});
  CHECK(file.read_slab<double>("/timing/gen", {3, 0}, {1, 3}) == std::vector<double>{3, 4, 5});
  const auto lengths = file.read<std::int32_t>("/rollout/response_length");
  CHECK(lengths.dims == Dims{4, 3});
  CHECK(lengths.values == std::vector<std::int32_t>{0, 0, -1, 1, 1, 1, 2, 2, -1, 3, 3, 3});
  CHECK(file.read<std::int64_t>("/decisions/step").values ==
        std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(file.read<std::int64_t>("/decisions/tp/before").values[1] == 1);
  CHECK(file.read<double>("/decisions/tp/after").values[1] == 3);
  CHECK(file.read_strings("/decisions/to")[1] == "2x1");
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
}

TEST_CASE("an empty run can be saved and loaded") {
  const Scratch scratch;
  RunFile(scratch / "run.h5").save();
  auto run = RunFile::load(scratch / "run.h5");
  fill(run, 0, 1);
  run.save();
  CHECK(Hdf5File::open_read(scratch / "run.h5").exists("/metrics/actor/loss"));
}

TEST_CASE("a run loaded, cut and continued equals one that ran through") {
  const Scratch scratch;
  auto straight = sample(scratch / "a.h5", 6);
  straight.save();
  sample(scratch / "b.h5", 5).save();
  auto resumed = RunFile::load(scratch / "b.h5");
  resumed.truncate_after(2);
  fill(resumed, 3, 6);
  resumed.save();
  const auto a = Hdf5File::open_read(scratch / "a.h5"), b = Hdf5File::open_read(scratch / "b.h5");
  REQUIRE(a.datasets() == b.datasets());
  for (const auto& name : a.datasets()) {
    CAPTURE(name);
    CHECK(a.dims(name) == b.dims(name));
    CHECK(a.attribute_names(name) == b.attribute_names(name));
    CHECK(a.string_attribute(name, "description") == b.string_attribute(name, "description"));
    if (name == "/config") {
      CHECK(a.read_string(name) == b.read_string(name));
    } else if (a.type(name) == StoredType::kText) {
      CHECK(a.read_strings(name) == b.read_strings(name));
    } else if (a.type(name) == StoredType::kI64) {
      CHECK(a.read<std::int64_t>(name).values == b.read<std::int64_t>(name).values);
    } else if (name == "/rollout/response_length") {
      CHECK(a.read<std::int32_t>(name).values == b.read<std::int32_t>(name).values);
    } else {
      const auto x = a.read<double>(name).values, y = b.read<double>(name).values;
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK((x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))));
    }
  }
  CHECK(b.string_attribute("/machine", "ranks") == "4");
}

TEST_CASE("columns of numbers become what the tables list, and go on so") {
  const Scratch scratch;
  const auto path = scratch / "run.h5";
  {
    RunFile run = sample(path, 2);
    run.add_record("layout_switches", 1, {{"from", 11.0}, {"to", 2.0}, {"sequences", 7.0}});
    run.save();  // as of version 1
  }
  auto run = RunFile::load(path);
  run.add_record("layout_switches", 2, {{"from", "1x2"}, {"to", "2x1"}, {"sequences", 3}});
  run.save();
  const auto file = Hdf5File::open_read(path);
  CHECK(file.read_strings("/layout_switches/to") == std::vector<std::string>{"2x1", "2x1"});
  CHECK(file.read_strings("/layout_switches/from") == std::vector<std::string>{"1x2", "1x2"});
  CHECK(file.read<std::int64_t>("/layout_switches/sequences").values ==
        std::vector<std::int64_t>{7, 3});
}

TEST_CASE("metrics are rebuilt from the log of record") {
  const Scratch scratch;
  const auto path = scratch / "run.h5", log = scratch / "metrics.jsonl";
  spill(log,
        "{\"step\": 1, \"actor/loss\": 0.5}\n{\"step\": 2, \"actor/loss\": \"nan\", \"new\": "
        "3}\n{\"step\": 3");
  const bool damaged = GENERATE(false, true);
  if (damaged) {
    spill(path, "no HDF5");
  } else {
    sample(path, 4).save();
  }
  RunFile::rebuild_from(path, log).save();
  const auto file = Hdf5File::open_read(path);
  CHECK(file.read<std::int64_t>("/metrics/step").values == std::vector<std::int64_t>{1, 2});
  CHECK(file.read<double>("/metrics/actor/loss").values[0] == 0.5);
  CHECK(file.read<double>("/metrics/new").values[1] == 3);
  CHECK_FALSE(file.exists("/metrics/timing_s/gen"));
  CHECK(file.exists("/timing/gen") == !damaged);
}

TEST_CASE("names that collide are refused when they come, not when saving") {
  const Scratch scratch;
  RunFile run(scratch / "run.h5");
  run.add_metrics(0, {{"a/b", 1}});
  for (const std::string name : {"a", "a/b/c", "step", "", "/x", "x/", "x//y", "./x", "x/./y"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(run.add_metrics(0, {{name, 1}}), Error);
  }
  CHECK_THROWS_MATCHES(run.add_metrics(0, {{"a/b/c", 1}}), Error,
                       MessageMatches(ContainsSubstring("/metrics/a/b is a dataset")));
  CHECK_THROWS_AS(run.add_record("metrics", 0, {{"x", 1}}), Error);
  run.save();
}

TEST_CASE("iterations go back by truncation only") {
  const Scratch scratch;
  RunFile run(scratch / "run.h5");
  fill(run, 0, 3);
  CHECK_THROWS_MATCHES(run.add_metrics(1, {{"x", 1}}), Error,
                       MessageMatches(ContainsSubstring("truncate_after")));
  CHECK_THROWS_MATCHES(run.add_lengths(2, {}), Error,
                       MessageMatches(ContainsSubstring("a bug in Taper")));
  run.truncate_after(0);
  fill(run, 1, 3);
}

TEST_CASE("saving is due at first and after a while") {
  const Scratch scratch;
  RunFile run(scratch / "run.h5");
  CHECK(run.save_if_due(1e9));
  CHECK_FALSE(run.save_if_due(1e9));
  // Not before it would be a small share of the time.
  CHECK_FALSE(run.save_if_due(0));
  bool saved = false;
  const auto start = std::chrono::steady_clock::now();
  while (!saved && std::chrono::steady_clock::now() - start < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    saved = run.save_if_due(0);
  }
  CHECK(saved);
}

TEST_CASE("other files are refused as run files") {
  const Scratch scratch;
  const auto path = scratch / "other.h5";
  {
    auto file = Hdf5File::create(path);
    file.set_attribute("/", "format", "other");
  }
  CHECK_THROWS_MATCHES(RunFile::load(path), Error,
                       MessageMatches(ContainsSubstring("not a file of format taper-run")));
  {
    auto file = Hdf5File::create(path);
    file.set_attribute("/", "format", "taper-run");
    file.set_attribute("/", "format_version", 99);
  }
  CHECK_THROWS_MATCHES(RunFile::load(path), Error,
                       MessageMatches(ContainsSubstring("format version 99")));
  CHECK_THROWS_AS(RunFile::load(scratch / "absent.h5"), Error);
}
