// SPDX-License-Identifier: Apache-2.0
#include "study/SimulateOptions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>

#include "base/Error.hpp"
#include "study/SimulateJob.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

SimulateOptions read(const std::string& text) {
  SimulateOptions options;
  param::Schema schema;
  describe(schema, options);
  schema.read(param::ParamFile::parse(text, "case.yaml"));
  return options;
}

}  // namespace

TEST_CASE("a case describes machine, model and generation") {
  const SimulateOptions o = read(
      "Machine:\n  Ranks: 16\n  Device:\n    Memory GB: 48\n  Inside:\n    All-Reduce: tree\n"
      "Model:\n  KV Heads: 4\nGeneration:\n  Long Share: 0.2\nPlay:\n  Degrees: [2, 4]\n");
  CHECK(o.machine.ranks == 16);
  CHECK(o.machine.device.memory_gb == 48);
  CHECK(o.machine.inside.form == AllReduceForm::kTree);
  CHECK(o.model.kv_heads == 4);
  CHECK(o.generation.lengths.long_share == 0.2);
  CHECK(o.play.degrees == std::vector<int>{2, 4});
}

TEST_CASE("the dump of the defaults reads back") {
  SimulateOptions options;
  param::Schema schema;
  describe(schema, options);
  CHECK(read(schema.defaults_yaml()).machine.device.memory_gb_s ==
        options.machine.device.memory_gb_s);
}

TEST_CASE("the cases in the tree can be played") {
  int cases = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TAPER_DATA_DIR "/simulate")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path());
    SimulateOptions options;
    param::Schema schema;
    describe(schema, options);
    schema.read(param::ParamFile::read(entry.path().string()));
    CHECK(setting_of(options).degrees.size() > 1);
    ++cases;
  }
  CHECK(cases >= 5);
}

TEST_CASE("bad values name file and key") {
  CHECK_THROWS_WITH(read("Machine:\n  Device:\n    Memory Share: 2\n"),
                    ContainsSubstring("case.yaml") && ContainsSubstring("Memory Share"));
  CHECK_THROWS_WITH(read("Machine:\n  Rank: 2\n"),
                    ContainsSubstring("case.yaml") && ContainsSubstring("Ranks"));
  CHECK_THROWS_WITH(read("Generation:\n  Long Tokens: 20000\n"),
                    ContainsSubstring("case.yaml") && ContainsSubstring("Generation/Long Tokens"));
  CHECK_THROWS_WITH(read("Machine:\n  Ranks: 12\n"), ContainsSubstring("Machine/Ranks is 12"));
}
