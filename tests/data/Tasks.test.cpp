// SPDX-License-Identifier: Apache-2.0
#include "data/Tasks.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <numeric>

#include "reward/Answers.hpp"
#include "support/GoldenText.hpp"

namespace taper::testing {
namespace {

TaskItem first_item(const std::string& task, const std::string& prompt_part = "") {
  for (std::uint64_t i = 0;; ++i) {
    auto item = make_task_item(TaskMix::from_name(task), 1, i);
    if (contains(item.prompt, prompt_part)) return item;
  }
}

TEST_CASE("items are pure in seed and index") {
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto a = make_task_item({}, 3, i), b = make_task_item({}, 3, i);
    CHECK(a.prompt == b.prompt);
    CHECK(a.worked == b.worked);
  }
  CHECK(make_task_item({}, 3, 0).prompt + make_task_item({}, 3, 1).prompt !=
        make_task_item({}, 4, 0).prompt + make_task_item({}, 4, 1).prompt);
}

TEST_CASE("worked answers in their documented form") {
  const auto worked = [](const std::string& task, const std::string& prompt) {
    TaskItem item;
    item.task = task;
    item.prompt = prompt;
    RandomStream random(1, RandomPurpose::kTest, 0, 0);
    return worked_with_slips(item, 0, random);
  };
  CHECK(worked("sum", "12+34+56=") == "12+34=46+56=102#102");
  CHECK(worked("gcd", "gcd(84,36)=") == "84,36 48,36 12,36 12,24 12,12#12");
  CHECK(worked("gcd", "gcd(6,6)=") == "6,6#6");
  CHECK(worked("collatz", "collatz(3)=") == "3a10b5c16d8e4f2g1#7");
  CHECK(worked("collatz", "collatz(7)=") == "7a22b11c34d17e52f26g13h40i20(10)10a5b16c8d4e2f1#16");
}

TEST_CASE("both responses of each item are right, and the first character tells them apart") {
  std::map<std::string, std::vector<std::size_t>> lengths;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const auto item = make_task_item({}, 11, i);
    lengths[item.task].push_back(item.worked.size());
    REQUIRE(score_task_answer(item.answer, item.worked) == 1);
    REQUIRE(score_task_answer(item.answer, item.direct) == 1);
    REQUIRE(item.direct.front() == '#');
    REQUIRE(std::isdigit(static_cast<unsigned char>(item.worked.front())));
  }
  const auto mean = [](const std::vector<std::size_t>& v) {
    return static_cast<double>(std::accumulate(v.begin(), v.end(), std::size_t{0})) /
           static_cast<double>(v.size());
  };
  // Weights 60/35/5; binomial deviation 0.35 % at most, times 5.
  CHECK(std::abs(static_cast<double>(lengths["sum"].size()) / 20'000 - 0.60) < 0.0175);
  CHECK(std::abs(static_cast<double>(lengths["gcd"].size()) / 20'000 - 0.35) < 0.0175);
  CHECK(std::abs(static_cast<double>(lengths["collatz"].size()) / 20'000 - 0.05) < 0.0080);
  CHECK(mean(lengths["sum"]) > 25);
  CHECK(mean(lengths["sum"]) < 35);
  // The tail that the scheduler lives from: p99 far above the median.
  auto gcd = lengths["gcd"];
  std::sort(gcd.begin(), gcd.end());
  CHECK(gcd[gcd.size() * 99 / 100] > 3 * gcd[gcd.size() / 2]);
}

TEST_CASE("no correct item exceeds the response limit") {
  // All of them: 997 starts, and the gcd pairs that subtract longest.
  std::size_t longest = 0;
  for (long n = 3; n <= 999; ++n) {
    TaskItem item;
    item.task = "collatz";
    item.prompt = "collatz(" + std::to_string(n) + ")=";
    RandomStream random(1, RandomPurpose::kTest, 0, 0);
    const auto text = worked_with_slips(item, 0, random);
    CHECK(text.find('#') != std::string::npos);
    longest = std::max(longest, text.size());
  }
  CHECK(longest <= kTaskResponseLimit);
}

TEST_CASE("slips are consistent and change answers at the expected rate") {
  const auto item = first_item("sum");
  int slipped = 0, wrong = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    RandomStream random(5, RandomPurpose::kTest, 0, i);
    const auto text = worked_with_slips(item, 0.05, random);
    CHECK(text.size() <= kTaskResponseLimit);
    slipped += text != item.worked;
    wrong += score_task_answer(item.answer, text) == 0;
    // The marked answer is the last running total.
    const auto total = text.substr(text.rfind('=') + 1);
    CHECK(total.substr(0, total.find('#')) == total.substr(total.find('#') + 1));
  }
  const auto steps = std::count(item.prompt.begin(), item.prompt.end(), '+');
  const double expected = 1 - std::pow(0.95, static_cast<double>(steps));
  CHECK(std::abs(slipped / 4000.0 - expected) < 5 * std::sqrt(expected * (1 - expected) / 4000));
  CHECK(wrong <= slipped);
  CHECK(wrong > 0.9 * slipped);
}

TEST_CASE("texts with many slips still end") {
  for (const char* task : {"sum", "gcd", "collatz"})
    for (std::uint64_t i = 0; i < 300; ++i) {
      const auto item = make_task_item(TaskMix::from_name(task), 9, i);
      RandomStream random(9, RandomPurpose::kTest, 1, i);
      const auto text = worked_with_slips(item, 0.5, random);
      CHECK(text.size() <= kTaskResponseLimit);
      CHECK(std::count(text.begin(), text.end(), '#') == 1);
    }
}

TEST_CASE("supervised examples mix the styles and keep the items") {
  int direct = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto item = make_task_item({}, 2, i);
    const auto example = make_sft_example({}, 2, i, {});
    REQUIRE(example.prompt == item.prompt);
    const bool is_direct = example.response.front() == '#';
    if (is_direct) REQUIRE(example.response == item.direct);
    direct += is_direct;
  }
  CHECK(std::abs(direct / 4000.0 - 0.5) < 5 * 0.5 / std::sqrt(4000.0));
  CHECK(make_sft_example({}, 2, 0, {1.0, 0.0}).response == make_task_item({}, 2, 0).direct);
  CHECK(make_sft_example({}, 2, 0, {0.0, 0.0}).response == make_task_item({}, 2, 0).worked);
}

TEST_CASE("bad options are refused") {
  CHECK(contains(error_of([] { TaskMix::from_name("sums"); }), "'sums'"));
  CHECK_FALSE(TaskMix{0, 0, 0}.problems().empty());
  CHECK_FALSE(TaskMix{-1, 2, 0}.problems().empty());
  error_of([] { make_task_item({0, 0, 0}, 1, 1); });
  error_of([] { make_sft_example({}, 1, 1, {2.0, 0.0}); });
  CHECK(SftStyle{0.5, -0.1}.problems().size() == 1);
}

}  // namespace
}  // namespace taper::testing
