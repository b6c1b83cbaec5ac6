// SPDX-License-Identifier: Apache-2.0
//
// taper exits, and taper generate with what it makes.
#include "Commands.hpp"

using namespace taper;
using namespace taper::commands;

TEST_CASE("exits are made of a model's responses and change none") {
  const Scratch scratch;
  const std::string model = scratch / "model", exits = scratch / "exits";
  spill(scratch / "in.jsonl", "{\"tokens\": [5, 9, 7]}\n{\"tokens\": [8, 8, 1]}\n");
  const std::string generate = "generate --model " + model + " --prompts " + scratch / "in.jsonl" +
                               " --max-new-tokens 20 --samples 2 --output ";
  const Outcome plain = run(generate + scratch / "plain.jsonl");
  INFO(plain.text);
  REQUIRE(plain.code == 0);
  const std::string make = "exits --model " + model + " --responses " + scratch / "plain.jsonl" +
                           " --vocabulary 32 --output " + exits + " --layers ";
  const Outcome made = run(make + "1");
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text, ContainsSubstring("exits behind 1 of 2 layers"));
  const Outcome drafted = run(generate + scratch / "drafted.jsonl" + " --speculation fixed" +
                              " --index-mb 0 --early-exits " + exits);
  INFO(drafted.text);
  REQUIRE(drafted.code == 0);
  CHECK(slurp(scratch / "plain.jsonl") == slurp(scratch / "drafted.jsonl"));
  CHECK_THAT(drafted.text, ContainsSubstring("tokens per sequence and step"));

  const Outcome again = run(make + "1");  // exits may replace exits
  CHECK(again.code == 0);
  const Outcome deep = run(make + "2");
  CHECK(deep.code == 2);
  CHECK_THAT(deep.text, ContainsSubstring("exits are behind 1 to 1 of them"));
  const Outcome over = run("exits --model " + model + " --layers 1 --responses " +
                           scratch / "plain.jsonl" + " --output " + model);
  CHECK(over.code == 2);
  CHECK_THAT(over.text, ContainsSubstring("something other than early exits"));
  const Outcome both = run(generate + scratch / "drafted.jsonl" + " --speculation auto" +
                           " --early-exits " + exits + " --draft-model " + model);
  CHECK(both.code == 2);
  CHECK_THAT(both.text, ContainsSubstring("both named"));
  const Outcome none =
      run(generate + scratch / "drafted.jsonl" + " --speculation auto" + " --early-exits " + model);
  CHECK(none.code == 2);
  CHECK_THAT(none.text, ContainsSubstring("name a directory of taper exits"));
}
