// SPDX-License-Identifier: Apache-2.0
#include "results/MetricsLog.hpp"

#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <csignal>
#include <limits>

#include "base/Error.hpp"
#include "support/Scratch.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using taper::Error;
using taper::MetricsLog;
using taper::OpenMode;
using taper::read_metrics_log;
using taper::value_of;
using taper::test::Scratch;
using taper::test::slurp;
using taper::test::spill;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::int64_t> iterations_in(const std::filesystem::path& path) {
  std::vector<std::int64_t> found;
  for (const auto& record : read_metrics_log(path)) found.push_back(record.iteration);
  return found;
}

}  // namespace

TEST_CASE("a metrics line is JSON in the order given") {
  const Scratch scratch;
  const auto path = scratch / "out/metrics.jsonl";
  MetricsLog log(path, OpenMode::kAppend);
  log.append({{"z/b", 0.1}, {"a\"q", 3}, {"n", std::nan("")}, {"i", kInf}, {"j", -kInf}}, 7);
  CHECK(slurp(path) ==
        "{\"step\": 7, \"z/b\": 0.1, \"a\\\"q\": 3, \"n\": \"nan\", \"i\": \"inf\", \"j\": "
        "\"-inf\"}\n");
}

TEST_CASE("a metric is found by its name") {
  const taper::MetricValues values{{"train/loss", 0.5}, {"train/loss", 2.0}, {"train", 3.0}};
  CHECK(value_of(values, "train/loss") == 0.5);  // the first of that name
  CHECK(value_of(values, "train") == 3.0);
  CHECK(std::isnan(value_of(values, "loss")));
  CHECK(std::isnan(value_of({}, "train")));
}

TEST_CASE("metrics are read back bit for bit") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  const std::vector<double> values = {1.0 / 3, 5e-324, -0.0, 1e308, 123456789012345678.0,
                                      kInf,    -kInf};
  {
    MetricsLog log(path, OpenMode::kTruncate);
    for (std::size_t i = 0; i < values.size(); ++i)
      log.append({{"x", values[i]}, {"n", std::nan("")}}, int(i));
  }
  const auto records = read_metrics_log(path);
  REQUIRE(records.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(records[i].iteration == static_cast<std::int64_t>(i));
    CHECK(records[i].values[0].first == "x");
    CHECK(records[i].values[0].second == values[i]);
    CHECK(std::signbit(records[i].values[0].second) == std::signbit(values[i]));
    CHECK(std::isnan(records[i].values[1].second));
  }
}

TEST_CASE("a torn last line is cut when reopening, and left out when reading") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  spill(path, "{\"step\": 1, \"a\": 1}\n{\"step\": 2, \"a\": 2}\n{\"step\": 3, \"a\"");
  CHECK(iterations_in(path) == std::vector<std::int64_t>{1, 2});
  MetricsLog log(path, OpenMode::kAppend);
  log.append({{"a", 3}}, 3);
  CHECK(slurp(path) ==
        "{\"step\": 1, \"a\": 1}\n{\"step\": 2, \"a\": 2}\n{\"step\": 3, \"a\": 3}\n");
}

TEST_CASE("iterations may repeat but not go back") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  MetricsLog log(path, OpenMode::kAppend);
  log.append({{"a", 1}}, 4);
  log.append({{"b", 1}}, 4);
  CHECK_THROWS_MATCHES(log.append({}, 3), Error,
                       MessageMatches(ContainsSubstring("iteration 3 after 4")));
  MetricsLog again(path, OpenMode::kAppend);
  CHECK_THROWS_AS(again.append({}, 3), Error);
  CHECK_THROWS_AS(again.append({{"step", 1}}, 5), Error);
  CHECK(iterations_in(path) == std::vector<std::int64_t>{4, 4});
}

TEST_CASE("a resumed run drops what lies beyond its checkpoint") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  {
    MetricsLog log(path, OpenMode::kAppend);
    for (int i = 0; i < 6; ++i) log.append({{"a", i}}, i);
  }
  MetricsLog log(path, OpenMode::kAppend);
  log.truncate_after(2);
  CHECK(iterations_in(path) == std::vector<std::int64_t>{0, 1, 2});
  log.append({{"a", 30}}, 3);
  CHECK(iterations_in(path) == std::vector<std::int64_t>{0, 1, 2, 3});
  log.truncate_after(-1);
  CHECK(slurp(path).empty());
  log.append({{"a", 0}}, 0);
  CHECK(iterations_in(path) == std::vector<std::int64_t>{0});
  log.truncate_after(100);
  CHECK(iterations_in(path) == std::vector<std::int64_t>{0});
}

TEST_CASE("kTruncate starts anew") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  spill(path, "whatever\n");
  MetricsLog log(path, OpenMode::kTruncate);
  CHECK(slurp(path).empty());
}

TEST_CASE("a file that is no metrics log is refused with its line, and not touched") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  const std::string content =
      GENERATE(as<std::string>{}, "{\"step\": 1}\nnot JSON\n", "{\"step\": 1}\n{\"a\": 1}\n",
               "{\"step\": 1}\n{\"step\": 2, \"a\": \"high\"}\n", "{\"step\": 1}\n[1]\ntorn",
               "{\"step\": 1}\n{\"step\": 0}\n");
  spill(path, content);
  CHECK_THROWS_MATCHES(
      MetricsLog(path, OpenMode::kAppend), Error,
      MessageMatches(ContainsSubstring("metrics.jsonl:2") &&
                     ContainsSubstring("delete this line") && ContainsSubstring("--resume none")));
  CHECK_THROWS_AS(read_metrics_log(path), Error);
  CHECK(slurp(path) == content);
}

TEST_CASE("no room leaves whole lines only") {
  const Scratch scratch;
  const auto path = scratch / "metrics.jsonl";
  MetricsLog log(path, OpenMode::kAppend);
  log.append({{"a", 1}}, 1);
  const auto before = slurp(path);
  rlimit saved{};
  getrlimit(RLIMIT_FSIZE, &saved);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{before.size() + 10, saved.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  CHECK_THROWS_MATCHES(log.append({{"a", 2}}, 2), Error,
                       MessageMatches(ContainsSubstring("file size limit reached")));
  setrlimit(RLIMIT_FSIZE, &saved);
  std::signal(SIGXFSZ, handler);
  CHECK(slurp(path) == before);
  log.append({{"a", 2}}, 2);
  CHECK(iterations_in(path) == std::vector<std::int64_t>{1, 2});
}
