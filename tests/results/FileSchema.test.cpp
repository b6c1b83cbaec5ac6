// SPDX-License-Identifier: Apache-2.0
#include "results/FileSchema.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using namespace taper;

TEST_CASE("names of a pattern stand for one part of a path or more") {
  CHECK(fits_pattern("/config", "/config"));
  CHECK(!fits_pattern("/config", "/config/x"));
  CHECK(fits_pattern("/metrics/<name>", "/metrics/a"));
  CHECK(fits_pattern("/metrics/<name>", "/metrics/a/b"));
  CHECK(!fits_pattern("/metrics/<name>", "/metrics/"));
  CHECK(!fits_pattern("/metrics/<name>", "/timing/a"));
  CHECK(fits_pattern("/<table>/step", "/decisions/step"));
  CHECK(!fits_pattern("/<table>/step", "/decisions/steps"));
  CHECK(fits_pattern("static_tp<N>_s", "static_tp16_s"));
  CHECK(!fits_pattern("static_tp<N>_s", "static_tp_s"));
}

TEST_CASE("every format has one schema, and every rule a meaning") {
  std::set<std::string> formats;
  for (const FileSchema* schema : all_schemas()) {
    INFO(schema->format);
    CHECK(formats.insert(schema->format).second);
    CHECK(schema_of(schema->format) == schema);
    std::set<std::string> names;
    for (const DatasetRule& rule : schema->datasets) {
      INFO(rule.name);
      CHECK(names.insert(rule.name).second);
      CHECK(!rule.description.empty());
      CHECK(rule.name.starts_with('/'));
    }
    for (const AttributeRule& rule : schema->attributes) {
      INFO(rule.object << " " << rule.name);
      CHECK(!rule.meaning.empty());
    }
    for (const RecordTable& table : schema->records)
      for (const ColumnRule& column : table.columns) {
        INFO(table.name << " " << column.name);
        CHECK(!column.units.empty());
        CHECK(!column.description.empty());
      }
  }
  CHECK(schema_of("taper-other") == nullptr);
}

TEST_CASE("a writer gets its options by the name of a dataset") {
  const DatasetOptions group = rollout_schema().options_of("/group");
  CHECK(group.units == "1");
  CHECK(group.compression == 1);
  CHECK(group.checksum == Checksum::kFletcher32);
  CHECK(rollout_schema().options_of("/reward_names").compression == 0);
  CHECK(state_schema().options_of("/config").checksum == Checksum::kNone);
  CHECK_THROWS_AS(rollout_schema().options_of("/other"), Error);
  REQUIRE(column_rule("/layout_accounts/static_tp4_s") != nullptr);
  CHECK(column_rule("/layout_accounts/static_tp4_s")->units == "s");
  CHECK(column_rule("/layout_accounts/other") == nullptr);
}

// The tables of the documentation are those of the program: `taper inspect --schema FORMAT`.
TEST_CASE("the documentation shows the schemas") {
  const std::string text = test::slurp(TAPER_DATA_DIR "/../doc/results-schema.md");
  REQUIRE(!text.empty());
  for (const FileSchema* schema : all_schemas()) {
    INFO("doc/results-schema.md lacks the tables of: taper inspect --schema " << schema->format);
    CHECK(text.find(to_markdown(*schema)) != std::string::npos);
  }
}

TEST_CASE("files of another format or version are refused by name") {
  const auto problem = [](const Hdf5File& file) -> std::string {
    try {
      require_format(file, run_schema(), "make it anew");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::kBadInput);
      return error.what();
    }
    return "";
  };
  Hdf5File file = Hdf5File::create_in_memory("a.h5");
  CHECK(problem(file) ==
        "a.h5 is not a file of format taper-run, such as run.h5 (it has no attribute 'format'); "
        "check the path");
  write_format(file, rollout_schema());
  CHECK(problem(file) ==
        "a.h5 is not a file of format taper-run, such as run.h5 (its format is taper-rollouts); "
        "check the path");
  write_format(file, run_schema());
  CHECK(problem(file).empty());
  file.set_attribute("/", "format_version", 9);
  CHECK(problem(file) == "a.h5 has format version 9 (this program reads 1 to 2); make it anew");
  file.set_attribute("/", "format_version", 1);
  CHECK(problem(file).empty());
}
