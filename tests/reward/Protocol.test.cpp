// SPDX-License-Identifier: Apache-2.0
#include "reward/Protocol.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "io/Json.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Meaning = WorkerAnswer::Meaning;

namespace {

// The answer to request 7.
WorkerAnswer read(const std::string& line, const std::vector<std::string>& components = {}) {
  return answer_reader(components)(line, 7);
}

}  // namespace

TEST_CASE("a request is one line with all that is known") {
  JudgedResponse r;
  r.id = {3, 1};
  r.prompt = "two\nlines";
  r.response = "\xC3\xA9\xFF";  // the last byte is no UTF-8
  r.ground_truth = "42";
  r.data_source = "mine";
  r.extra_info = "{\"level\": 2}";
  r.prompt_tokens = 5;
  r.response_tokens = 7;
  r.finish = FinishReason::kLength;
  const auto request = [&] { return "{" + request_members("judge", r) + "}"; };
  CHECK(request().find('\n') == std::string::npos);
  const Json json = Json::parse(request());
  CHECK(json["reward"] == "judge");
  CHECK(json["prompt"] == "two\nlines");
  CHECK(json["response"] == "\xC3\xA9\xEF\xBF\xBD");
  CHECK(json["ground_truth"] == "42");
  CHECK(json["data_source"] == "mine");
  CHECK(json["extra_info"]["level"] == 2);
  CHECK(json["prompt_tokens"] == 5);
  CHECK(json["response_tokens"] == 7);
  CHECK(json["finish"] == "length");
  CHECK(json["index"] == 3);
  CHECK(json["sample"] == 1);
  r.extra_info.clear();
  CHECK(Json::parse(request())["extra_info"].is_null());
}

TEST_CASE("answers with a score") {
  const auto answer =
      read(R"({"id": 7, "score": 0.5, "components": {"b": 2, "a": 1}})", {"a", "b"});
  CHECK(answer.meaning == Meaning::kFigures);
  CHECK(answer.figures == std::vector<double>{0.5, 1, 2});
  CHECK(read(R"({"score": -1, "id": 7, "error": null})").figures == std::vector<double>{-1});
}

TEST_CASE("errors that a worker reports keep it in step") {
  const auto check = [](const char* line, const char* word) {
    const auto answer = read(line, {"a"});
    CHECK(answer.meaning == Meaning::kError);
    CHECK_THAT(answer.problem, ContainsSubstring(word));
  };
  check(R"({"id": 7, "error": "no such judge"})", "no such judge");
  check(R"({"id": 7, "error": {"code": 3}})", "\"code\":3");
  check(R"({"id": 7})", "neither a finite 'score'");
  check(R"({"id": 7, "score": null})", "neither a finite 'score'");
  check(R"({"id": 7, "score": "1"})", "neither a finite 'score'");
  check(R"({"id": 7, "score": true})", "neither a finite 'score'");
  check(R"({"id": 7, "score": 1e300})", "neither a finite 'score'");  // infinite as a float
  check(R"({"id": 7, "score": 1})", "no finite 'a'");
  check(R"({"id": 7, "score": 1, "components": [1]})", "no finite 'a'");
}

TEST_CASE("what is no answer to the request shows that the worker is out of step") {
  const auto check = [](const std::string& line, const char* word) {
    const auto answer = read(line);
    CHECK(answer.meaning == Meaning::kNonsense);
    CHECK_THAT(answer.problem, ContainsSubstring(word));
  };
  check("loading weights ...", "'loading weights ...'");
  check("", "not a JSON object");
  check("[1]", "not a JSON object");
  check("{\"id\": 7, \"score\": NaN}", "not a JSON object");  // as Python's json writes it
  check("{\"id\": 8, \"score\": 1}", "to the request of id 7");
  check("{\"id\": \"7\", \"score\": 1}", "to the request of id 7");
  check("{\"score\": 1}", "to the request of id 7");
  check("\x1b[2J\xFF", "\\x1b");
  check(std::string(5000, 'x'), "xxx...'");
}
