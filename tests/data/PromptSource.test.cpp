// SPDX-License-Identifier: Apache-2.0
#include "data/PromptSource.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() /
               ("taper-prompts-" + std::to_string(::getpid()) + "-" + std::to_string(++made)))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  inline static int made = 0;
  std::string path_;
};

std::string ten_lines() {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += R"({"prompt": "item )" + std::to_string(i) +
            R"(", "data_source": "src", "ground_truth": )" + std::to_string(i) + "}\n";
  return text;
}

const ModelFiles& model() {
  static const ModelFiles files(TAPER_DATA_DIR "/model");
  return files;
}

// Batch number `batch` of so many prompts.
std::vector<Prompt> batch_of(const PromptSource& source, std::int64_t batch, int count) {
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(batch * count + i);
  return source.training(numbers);
}

DataOptions from_file(const std::string& path) {
  DataOptions options;
  options.prompts = {path};
  return options;
}

}  // namespace

TEST_CASE("each pass over a file meets every prompt once, in an order of its own") {
  const TextFile file(ten_lines());
  const PromptSource source(from_file(file.path()), model(), 100, 5);
  std::vector<std::vector<std::string>> passes(3);
  for (int batch = 0; batch < 6; ++batch)
    for (const Prompt& p : batch_of(source, batch, 5)) passes[batch / 2].push_back(p.truth);
  for (const auto& pass : passes)
    CHECK(std::set<std::string>(pass.begin(), pass.end()).size() == 10);
  CHECK(passes[0] != passes[1]);
  CHECK(passes[1] != passes[2]);

  std::vector<std::string> across;  // a batch that begins in one pass and ends in the next
  for (const Prompt& p : batch_of(source, 1, 8)) across.push_back(p.truth);
  std::vector<std::string> expected(passes[0].begin() + 8, passes[0].end());
  expected.insert(expected.end(), passes[1].begin(), passes[1].begin() + 6);
  CHECK(across == expected);

  const PromptSource again(from_file(file.path()), model(), 100, 5),
      other(from_file(file.path()), model(), 100, 6);
  const auto truths = [](const PromptSource& s) {
    std::vector<std::string> list;
    for (const Prompt& p : batch_of(s, 0, 10)) list.push_back(p.truth);
    return list;
  };
  CHECK(truths(again) == passes[0]);
  CHECK(truths(other) != passes[0]);
}

TEST_CASE("several files are mixed by weights, and keep what rewards may see") {
  const TextFile file(ten_lines()),
      other(
          R"({"prompt": "x", "data_source": "b", "ground_truth": "1", "extra_info": {"k": [1, "ü"]}})");
  DataOptions options = from_file(file.path());
  options.prompts.push_back(other.path());
  const auto count = [&](const PromptSource& source) {
    int found = 0;
    for (const Prompt& p : batch_of(source, 0, 44)) found += p.source == "b";
    return found;
  };
  CHECK(count(PromptSource(options, model(), 100, 5)) == 4);  // each alike, four passes
  options.weights = {1, 3};
  const PromptSource source(options, model(), 100, 5);
  CHECK(count(source) == 33);
  CHECK(source.training_file_prompts() == 11);
  for (const Prompt& p : batch_of(source, 0, 8))
    CHECK(p.extra == (p.source == "b" ? "{\"k\":[1,\"ü\"]}" : ""));
  options.weights = {1};
  CHECK(!options.problems().empty());
}

TEST_CASE("prompts that are too long are left out") {
  const std::string line =
      R"({"prompt": ")" + std::string(50, 'x') + R"(", "ground_truth": "long"})";
  const TextFile file(ten_lines() + line + "\n");
  const PromptSource source(from_file(file.path()), model(), 20, 1);
  for (const Prompt& p : batch_of(source, 0, 30)) CHECK(p.truth != "long");
  CHECK_THROWS_WITH(PromptSource(from_file(file.path()), model(), 2, 1),
                    ContainsSubstring("all prompts are longer"));
}

TEST_CASE("chats are rendered, and what is missing is named") {
  {
    const TextFile file(
        R"({"prompt": [{"role": "user", "content": "1+1="}], "ground_truth": "2"})");
    DataOptions options = from_file(file.path());
    options.chat_template = TAPER_DATA_DIR "/chat_templates/chatml.jinja";
    const auto prompts = batch_of(PromptSource(options, model(), 200, 1), 0, 1);
    const std::string text = model().tokenizer().decode(prompts[0].tokens, SkipSpecial::kNo);
    CHECK_THAT(text, ContainsSubstring("user\n1+1="));
  }
  {
    const TextFile file(R"({"prompt": "1+1="})");
    CHECK_THROWS_WITH(PromptSource(from_file(file.path()), model(), 200, 1),
                      ContainsSubstring(file.path() + ":1") && ContainsSubstring("ground_truth"));
  }
}

TEST_CASE("prompts that cannot be used are told with file, line and a way out") {
  struct Case {
    const char *line, *problem, *advice;
  };
  const std::string long_one =
      R"({"prompt": ")" + std::string(300, 'x') + R"(", "ground_truth": "1"})";
  const Case cases[] = {
      {R"({"prompt": "a", "ground_truth": )", ":1: not valid JSON", "one object per line"},
      {R"(["a"])", ":1: not a JSON object", ""},
      {R"({"ground_truth": "1"})", ":1: exactly one of 'prompt'", "add what is missing"},
      {R"({"prompt": "a", "messages": [], "ground_truth": "1"})", ":1: exactly one", "remove"},
      {R"({"prompt": "a"})", ":1 has no 'ground_truth'", "add it"},
      {R"({"prompt": "a", "ground_truth": ""})", ":1 has no 'ground_truth'", "add it"},
      {R"({"prompt": "a", "ground_truth": {"x": 1}})", ":1: 'ground_truth' is {\"x\":1}",
       "write it as a text"},
      {R"({"prompt": "a", "ground_truth": true})", ":1: 'ground_truth' is true", "as a text"},
      {R"({"prompt": "a", "ground_truth": "1", "data_source": 5})", ":1: 'data_source' must be",
       "a text"},
      {R"({"prompt": "a", "reward_model": "x"})", ":1: 'reward_model' must be an object", "key"},
      {R"({"prompt": "", "ground_truth": "1"})", ":1: the prompt is empty", "remove the line"},
      {R"({"prompt": [], "ground_truth": "1"})", ":1: 'prompt' is []", "not empty"},
      {R"({"prompt": {"role": "user"}, "ground_truth": "1"})", ":1: 'prompt' is {",
       "a list of messages"},
      {R"({"tokens": [99999], "ground_truth": "1"})", ":1: token id 99999", "are below"},
      {long_one.c_str(), ": all prompts are longer than 200", "raise Rollout/Max Prompt Tokens"},
  };
  for (const Case& c : cases) {
    const TextFile file(c.line);
    INFO(c.line);
    CHECK_THROWS_WITH(PromptSource(from_file(file.path()), model(), 200, 1),
                      ContainsSubstring(file.path() + c.problem) && ContainsSubstring(c.advice));
  }
}

TEST_CASE("a prompt file that cannot be is named with its option") {
  const auto problem = [](const DataOptions& options) -> std::string {
    try {
      const PromptSource source(options, model(), 100, 1);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(problem(from_file("/tmp")), ContainsSubstring("Data/Prompts is /tmp (a directory)"));
}

TEST_CASE("chats that a template cannot render are named with file and line") {
  const TextFile file(
      "{\"prompt\": [{\"role\": \"assistant\", \"content\": \"x\"}], \"ground_truth\": \"2\"}\n");
  DataOptions options = from_file(file.path());
  options.chat_template = TAPER_GOLDEN_DIR "/text/templates/llama2.jinja";
  CHECK_THROWS_WITH(PromptSource(options, model(), 200, 1),
                    ContainsSubstring(file.path() + ":1: the chat template") &&
                        ContainsSubstring("user and assistant must take turns"));
}

TEST_CASE("held-out prompts come from a file or a task") {
  const TextFile file(ten_lines());
  const auto held_out = [](const std::string& from, int count) {
    return held_out_prompts({from, "mix", count}, {.option = "--prompts", .max_tokens = 100}, 1,
                            model());
  };
  const auto prompts = held_out(file.path(), 3);
  REQUIRE(prompts.size() == 3);
  CHECK(prompts[2].truth == "2");
  CHECK(prompts[2].source == "src");
  CHECK(held_out(file.path(), 99).size() == 10);
  CHECK(held_out(file.path(), 0).size() == 10);
  CHECK(held_out("", 4).size() == 4);
  CHECK_THROWS_WITH(held_out("no where", 3), ContainsSubstring("--prompts is 'no where'"));
}
