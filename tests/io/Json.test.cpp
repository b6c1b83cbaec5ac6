// SPDX-License-Identifier: Apache-2.0
#include "io/Json.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::Error;
using taper::Json;
using taper::test::Scratch;
using taper::test::slurp;
using taper::test::spill;

TEST_CASE("a JSON file is read and written") {
  const Scratch scratch;
  const auto path = scratch / "a.json";
  taper::OrderedJson value;
  value["z"] = 1;
  value["a"] = {1.5, "two", nullptr};
  taper::write_json_file(path, value, -1);
  CHECK(slurp(path) == "{\"z\":1,\"a\":[1.5,\"two\",null]}\n");
  const Json back = taper::read_json_file(path);
  CHECK(back["z"] == 1);
  CHECK(back["a"][1] == "two");
}

TEST_CASE("errors in a JSON file say where") {
  const Scratch scratch;
  const auto path = scratch / "bad.json";
  spill(path, "{\n  \"a\": 1,\n  \"b\": oops\n}\n");
  CHECK_THROWS_MATCHES(
      taper::read_json_file(path), Error,
      MessageMatches(ContainsSubstring("bad.json") && ContainsSubstring("line 3, column 8")));
  spill(path, "");
  CHECK_THROWS_MATCHES(taper::read_json_file(path), Error,
                       MessageMatches(ContainsSubstring("line 1, column 1")));
  CHECK_THROWS_MATCHES(
      taper::read_json_file(scratch / "absent.json"), Error,
      MessageMatches(ContainsSubstring("absent.json") && ContainsSubstring("no such file")));
  CHECK_THROWS_MATCHES(taper::read_json_file(scratch.path()), Error,
                       MessageMatches(ContainsSubstring("directory")));
}

TEST_CASE("a number beyond all ranges is bad input") {
  const Scratch scratch;
  const auto path = scratch / "bad.json";
  spill(path, "{\"a\": 1e999}");
  try {
    taper::read_json_file(path);
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(error.code() == taper::ExitCode::kBadInput);
    CHECK_THAT(error.what(), ContainsSubstring("bad.json") && ContainsSubstring("1e999"));
  }
}

TEST_CASE("bad UTF-8 is not written") {
  const Scratch scratch;
  CHECK_THROWS_MATCHES(taper::write_json_file(scratch / "a.json", Json("\xff")), Error,
                       MessageMatches(ContainsSubstring("a.json")));
  CHECK_FALSE(std::filesystem::exists(scratch / "a.json"));
}

TEST_CASE("JSON lines are counted, blank ones skipped") {
  const Scratch scratch;
  const auto path = scratch / "a.jsonl";
  spill(path, "{\"n\": 1}\r\n\n   \n{\"n\": 2}\n{\"n\": 3}");
  taper::JsonLines lines(path);
  Json value;
  std::vector<int> numbers;
  std::vector<std::string> at;
  while (lines.next(value)) {
    numbers.push_back(value["n"]);
    at.push_back(lines.where().substr(lines.where().rfind(':')));
  }
  CHECK(numbers == std::vector{1, 2, 3});
  CHECK(at == std::vector<std::string>{":1", ":4", ":5"});
}

TEST_CASE("errors in JSON lines say file and line") {
  const Scratch scratch;
  const auto path = scratch / "a.jsonl";
  spill(path, "{}\n\n{\"n\": }\n");
  taper::JsonLines lines(path);
  Json value;
  CHECK(lines.next(value));
  CHECK_THROWS_MATCHES(lines.next(value), Error, MessageMatches(ContainsSubstring("a.jsonl:3")));
}
