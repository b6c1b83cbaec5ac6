// SPDX-License-Identifier: Apache-2.0
#include "param/CurrentValue.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "RolloutOptions.hpp"
#include "base/Error.hpp"

namespace taper::param {
namespace {

TEST_CASE("a script gets the value that a parameter has") {
  test::RolloutOptions options;
  Schema schema;
  describe(schema, options);
  schema.read(ParamFile::parse(
      "Rollout:\n  Name: 'a path: with blanks'\n  Degrees: [1, 2]\n  Cache:\n    Pages: 128\n",
      "run.yaml"));
  CHECK(current_value(schema, "Rollout/Name") == "a path: with blanks");
  CHECK(current_value(schema, "Rollout/Degrees") == "[1, 2]");
  CHECK(current_value(schema, "Rollout/Cache/Pages") == "128");
  CHECK(current_value(schema, "Rollout/Mode") == "static");  // a default
}

TEST_CASE("a parameter that is not there is named with the nearest") {
  test::RolloutOptions options;
  Schema schema;
  describe(schema, options);
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_WITH(current_value(schema, "Rollout/Nme"),
                    ContainsSubstring("no parameter Rollout/Nme") &&
                        ContainsSubstring("did you mean 'Rollout/Name'"));
  CHECK_THROWS_AS(current_value(schema, "Rollout"), Error);
}

}  // namespace
}  // namespace taper::param
