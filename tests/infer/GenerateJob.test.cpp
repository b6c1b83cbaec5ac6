// SPDX-License-Identifier: Apache-2.0
#include "infer/GenerateJob.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "io/Json.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("text of responses does not command a terminal") {
  const ModelFiles files(TAPER_DATA_DIR "/model");
  const std::string said = "a\x1b[31m\x07\x7f\x01";
  const auto ids = files.tokenizer().encode(said, AddSpecial::kNo);
  Sample sample;
  sample.response.assign(ids.begin(), ids.end());
  sample.log_probs.assign(ids.size(), -1.0f);
  const std::string line = response_line(sample, files);
  CHECK(std::none_of(line.begin(), line.end() - 1,
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }));
  CHECK_THAT(line, ContainsSubstring("a\\u001b[31m\\u0007\\u007f\\u0001"));
  CHECK(parse_json(line, "line")["text"] == said);
}
