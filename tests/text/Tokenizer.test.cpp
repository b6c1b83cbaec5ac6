// SPDX-License-Identifier: Apache-2.0
#include "text/Tokenizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <thread>

#include "support/GoldenText.hpp"

namespace taper::testing {
namespace {

Tokenizer golden_tokenizer(const std::string& name) {
  return Tokenizer::from_file(golden_folder() / (name + ".tokenizer.json"));
}

nlohmann::json minimal_document() {
  return {{"added_tokens", nlohmann::json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"bc", 4}, {"abc", 5}}},
            {"merges", {"a b", "b c", "ab c"}}}}};
}

Tokenizer from(const nlohmann::json& document) {
  return Tokenizer::from_json(document.dump(), "test.json");
}

nlohmann::json split_at(const char* pattern) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}}}}};
}

TEST_CASE("ids and texts equal those of Hugging Face") {
  const std::string name =
      GENERATE("llama3", "qwen2", "gpt2", "smollm2", "llama2", "llama2_metaspace");
  const auto golden = read_golden("tokenizer_cases.json");
  const auto tokenizer = golden_tokenizer(name);
  const auto& texts = golden["texts"];
  const auto& expected = golden["cases"][name];
  CHECK(tokenizer.vocab_size() == expected["vocab_size"]);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    INFO(name << ", text " << i << ": " << text);
    const auto ids = tokenizer.encode(text, AddSpecial::kNo);
    REQUIRE(ids == expected["ids"][i].get<std::vector<int>>());
    const auto& decoded = expected["decoded"][i];
    CHECK(tokenizer.decode(ids, SkipSpecial::kNo) ==
          (decoded.is_null() ? text : decoded.get<std::string>()));
    std::vector<int> half;
    for (std::size_t k = 0; k < ids.size(); k += 2) half.push_back(ids[k]);
    CHECK(tokenizer.decode(half, SkipSpecial::kYes) ==
          expected["decoded_half"][i].get<std::string>());
    if (i < expected["special_ids"].size())
      CHECK(tokenizer.encode(text, AddSpecial::kYes) ==
            expected["special_ids"][i].get<std::vector<int>>());
  }
}

TEST_CASE("token_bytes joined are the text") {
  const std::string name = GENERATE("llama3", "smollm2");
  const auto tokenizer = golden_tokenizer(name);
  const auto golden = read_golden("tokenizer_cases.json");
  for (const auto& entry : golden["texts"]) {
    const auto text = entry.get<std::string>();
    std::string bytes;
    for (const int id : tokenizer.encode(text, AddSpecial::kNo)) bytes += tokenizer.token_bytes(id);
    CHECK(bytes == text);
  }
}

TEST_CASE("token_bytes with byte fallback are raw bytes") {
  const auto tokenizer = golden_tokenizer("llama2");
  const auto ids = tokenizer.encode("\xF0\x9F\x9A\x80", AddSpecial::kNo);
  std::string bytes;
  for (const int id : ids) bytes += tokenizer.token_bytes(id);
  CHECK(bytes == " \xF0\x9F\x9A\x80");  // the model's leading space is dropped by decode() only
  CHECK(tokenizer.decode(ids, SkipSpecial::kNo) == "\xF0\x9F\x9A\x80");
}

TEST_CASE("the tokenizer of the embedded model maps byte b to id b") {
  const auto tokenizer = Tokenizer::from_file(std::filesystem::path(TAPER_SOURCE_DIR) /
                                              "data/tokenizer/tokenizer.json");
  CHECK(tokenizer.vocab_size() == 261);
  for (int b = 0; b < 256; ++b)
    CHECK(tokenizer.token_bytes(b) == std::string(1, static_cast<char>(b)));
  CHECK(tokenizer.encode("Az\n\xC3\xA9", AddSpecial::kNo) ==
        std::vector<int>{65, 122, 10, 0xC3, 0xA9});
  CHECK(tokenizer.encode("1<|eos|>", AddSpecial::kYes) == std::vector<int>{256, '1', 257});
  CHECK(tokenizer.token_id("<|assistant|>") == 260);
  CHECK(tokenizer.is_special(258));
  CHECK_FALSE(tokenizer.is_special(65));
  CHECK(tokenizer.decode(std::vector<int>{256, 'h', 'i', 257}, SkipSpecial::kYes) == "hi");
  CHECK(tokenizer.decode(std::vector<int>{300, -1, 'x'}, SkipSpecial::kNo) ==
        "x");  // rows without a token
}

TEST_CASE("bytes that are not UTF-8 are encoded as U+FFFD") {
  const auto tokenizer = golden_tokenizer("qwen2");
  CHECK(tokenizer.encode("a\xF0\x9F\x9A b", AddSpecial::kNo) ==
        tokenizer.encode("a\xEF\xBF\xBD b", AddSpecial::kNo));
}

TEST_CASE("merges follow rank, then position") {
  const auto tokenizer = from(minimal_document());
  CHECK(tokenizer.encode("abc", AddSpecial::kNo) == std::vector<int>{5});
  CHECK(tokenizer.encode("abab", AddSpecial::kNo) == std::vector<int>{3, 3});
  CHECK(tokenizer.encode("bcabc", AddSpecial::kNo) == std::vector<int>{4, 5});
  CHECK(tokenizer.encode("axb", AddSpecial::kNo) ==
        std::vector<int>{3});  // x is dropped, then a and b meet
}

TEST_CASE("a word of a million characters takes no quadratic time") {
  const auto tokenizer = golden_tokenizer("llama2");
  const std::string word(1'000'000, 'a');
  std::string bytes;
  for (const int id : tokenizer.encode(word, AddSpecial::kNo)) bytes += tokenizer.token_bytes(id);
  CHECK(bytes == " " + word);
}

TEST_CASE("long runs of combining marks take no quadratic time") {
  const auto tokenizer = golden_tokenizer("qwen2");
  std::string marks = "a";
  for (int i = 0; i < 200'000; ++i) marks += i % 2 ? "\xCC\xA3" : "\xCC\x87";
  CHECK(tokenizer.encode(marks, AddSpecial::kNo).size() > 100'000);
}

TEST_CASE("one tokenizer serves several threads") {
  const auto tokenizer = golden_tokenizer("llama3");
  const auto text = read_golden("tokenizer_cases.json")["texts"].back().get<std::string>();
  const auto expected = tokenizer.encode(text, AddSpecial::kYes);
  std::vector<std::vector<int>> found(4);
  std::vector<std::thread> threads;
  for (auto& ids : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) ids = tokenizer.encode(text, AddSpecial::kYes);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& ids : found) CHECK(ids == expected);
}

TEST_CASE("unsupported components are named with their file") {
  const auto message = [](const char* key, const nlohmann::json& value) {
    auto document = minimal_document();
    document[key] = value;
    return error_of([&] { from(document); });
  };
  for (const char* key : {"normalizer", "pre_tokenizer", "decoder", "post_processor"}) {
    const auto text = message(key, {{"type", "Strange"}});
    CHECK(contains(text, "test.json: " + std::string(key)));
    CHECK(contains(text, "'Strange'"));
  }
  CHECK(contains(message("model", {{"type", "Unigram"}, {"vocab", nlohmann::json::array()}}),
                 "'Unigram'"));
  const auto text = message("pre_tokenizer", split_at("(a"));
  CHECK(contains(text, "test.json: pre_tokenizer.pretokenizers[0]: "));
  CHECK(contains(text, "'(a' is not valid (end pattern with unmatched parenthesis)"));
  CHECK(contains(message("pre_tokenizer", split_at("\\p{Nope}+")), "property name {Nope}"));
}

TEST_CASE("patterns are those of Oniguruma, and a search without end is an error") {
  auto document = minimal_document();
  const auto ids = [&](const char* pattern, const std::string& text) {
    document["pre_tokenizer"] = split_at(pattern);
    return from(document).encode(text, AddSpecial::kNo);
  };
  CHECK(ids("\\p{Han}+", "abc") == std::vector<int>{5});
  CHECK(ids("[a-c&&[^bc]]", "abc") == std::vector<int>{0, 4});
  CHECK(ids("(?<=ab)\\h", "abc") == std::vector<int>{3, 2});
  CHECK(ids("(?i:A)", "abc") == std::vector<int>{0, 4});
  const auto text = error_of([&] { ids("(?:a|a)*(?!.)", std::string(60, 'a') + "b"); });
  CHECK(contains(text, "pre_tokenizer.pretokenizers[0]: matching the regular expression failed ("));
  CHECK(contains(text, "in a text of 61 bytes; shorten the text"));
}

TEST_CASE("ids that no vocabulary has are refused, with the token and the place") {
  for (const char* text : {"-1", "67108864", "2147483647", "4294967296", "4294967299",
                           "18446744073709551615", "1e3", "\"3\"", "null"}) {
    CAPTURE(text);
    const auto id = nlohmann::json::parse(text);
    auto document = minimal_document();
    document["model"]["vocab"]["z"] = id;
    CHECK(contains(error_of([&] { from(document); }), "model: token 'z' has no valid id: "));
    document = minimal_document();
    document["added_tokens"] = {{{"id", id}, {"content", "<x>"}}};
    CHECK(contains(error_of([&] { from(document); }),
                   "added_tokens[0]: added token '<x>' has no valid id: "));
    document = minimal_document();
    document["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", {{{"SpecialToken", {{"id", "<x>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
        {"special_tokens", {{"<x>", {{"ids", nlohmann::json::array({id})}}}}}};
    CHECK(contains(error_of([&] { from(document); }),
                   "post_processor: special token '<x>' of the template has no valid id: "));
  }
}

TEST_CASE("broken tokenizer files are refused") {
  CHECK(contains(error_of([] { Tokenizer::from_file("/no/such/tokenizer.json"); }),
                 "/no/such/tokenizer.json"));
  CHECK(contains(error_of([] { Tokenizer::from_json("{\"model\": ", "x.json"); }),
                 "x.json: not valid JSON"));
  CHECK(contains(error_of([] { Tokenizer::from_json("[]", "x.json"); }), "x.json"));
  auto document = minimal_document();
  document["model"]["merges"] = {"a zz"};
  CHECK(contains(error_of([&] { from(document); }), "'zz'"));
  document = minimal_document();
  document["model"]["vocab"]["z"] = 3;
  CHECK(contains(error_of([&] { from(document); }), "id 3"));
  document["model"]["vocab"]["z"] = 1 << 30;
  CHECK(contains(error_of([&] { from(document); }), "'z'"));
  document = minimal_document();
  document["added_tokens"] = {{{"id", 9}, {"content", "abc"}}};
  CHECK(contains(error_of([&] { from(document); }), "'abc'"));
}

}  // namespace
}  // namespace taper::testing
