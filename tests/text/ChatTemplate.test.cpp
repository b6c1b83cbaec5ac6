// SPDX-License-Identifier: Apache-2.0
#include "text/ChatTemplate.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <optional>

#include "base/TextFile.hpp"
#include "support/GoldenText.hpp"

namespace taper::testing {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

Chat read_chat(const Json& object) {
  Chat chat;
  for (Json message : object["messages"]) {
    ChatMessage read{message["role"].get<std::string>(), message["content"].get<std::string>()};
    message.erase("role");
    message.erase("content");
    if (!message.empty()) read.other = message.dump();
    chat.messages.push_back(read);
  }
  if (object.contains("tools")) chat.tools = object["tools"].dump();
  return chat;
}

// A template of this tree or, by its bare name, a published one that came with the dependency; none
// if that came without.
std::optional<std::string> text_of(const std::string& file) {
  const fs::path source(TAPER_SOURCE_DIR);
  if (file == "data/tokenizer")
    return Json::parse(read_text_file(source / file / "tokenizer_config.json"))["chat_template"]
        .get<std::string>();
  const bool ours = file.find('/') != std::string::npos;
  const fs::path path = (ours ? source : fs::path(TAPER_PUBLISHED_TEMPLATES)) / file;
  if (!ours && !fs::exists(path)) return std::nullopt;
  return read_text_file(path);
}

ChatTemplate open(const std::string& file) {
  const auto text = text_of(file);
  if (!text) SKIP("no published templates in " TAPER_PUBLISHED_TEMPLATES);
  return ChatTemplate(*text, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}, file);
}

std::string ours(const std::string& name) {
  return "tests/golden/text/templates/" + name + ".jinja";
}

Texts answers_of(const ChatTemplate& chat_template, const Chat& chat) {
  const RenderedChat rendered = chat_template.render_with_answers(chat);
  Texts texts;
  for (const auto& [begin, end] : rendered.answers)
    texts.push_back(rendered.text.substr(begin, end - begin));
  return texts;
}

// A model directory that is removed again.
class Directory {
 public:
  Directory() {
    path_ = fs::temp_directory_path() / ("taper-chat-" + std::to_string(::getpid()));
    fs::create_directories(path_);
  }
  ~Directory() { fs::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

const Chat kHello = {{{"user", "hello"}}};

// Of other templates with TAPER_CHAT_CASES, which tests/golden/make_chat.py --of made.
TEST_CASE("rendered chats equal apply_chat_template of transformers") {
  const char* other = std::getenv("TAPER_CHAT_CASES");
  std::ifstream file(other ? fs::path(other) : golden_folder() / "chat_cases.json");
  const auto golden = Json::parse(file);
  int missing = 0;
  for (const auto& entry : golden["templates"]) {
    const auto name = entry["file"].get<std::string>();
    const auto text = text_of(name);
    missing += !text;
    if (!text) continue;
    const ChatTemplate chat_template(
        *text, {{"bos_token", golden["bos_token"]}, {"eos_token", golden["eos_token"]}}, name);
    for (std::size_t i = 0; i < golden["chats"].size(); ++i) {
      const Chat chat = read_chat(golden["chats"][i]);
      INFO(name << ", chat " << i);
      for (const auto& [key, add] : {std::pair{"plain", AddGenerationPrompt::kNo},
                                     std::pair{"prompted", AddGenerationPrompt::kYes}}) {
        const auto& expected = entry[key][i];
        if (expected.is_boolean()) continue;  // not made for such a chat
        if (expected.is_null())
          CHECK_THAT(error_of([&, add = add] { chat_template.render(chat, add); }),
                     ContainsSubstring(name));
        else
          CHECK(chat_template.render(chat, add) == expected.get<std::string>());
      }
    }
  }
  if (missing > 0) SKIP(missing << " published templates are not in " TAPER_PUBLISHED_TEMPLATES);
}

TEST_CASE("answers are what the assistant says after the generation prompt, its end included") {
  const Chat chat = {{{"user", "u1"}, {"assistant", " a1 "}, {"user", "u2"}, {"assistant", "a2"}}};
  const auto answers = [&](const std::string& file) { return answers_of(open(file), chat); };
  CHECK(answers("data/chat_templates/chatml.jinja") == Texts{" a1 <|im_end|>", "a2<|im_end|>"});
  CHECK(answers("data/tokenizer") == Texts{" a1 <|eos|>", "a2<|eos|>"});
  CHECK(answers(ours("qwen2")) == Texts{" a1 <|im_end|>", "a2<|im_end|>"});
  CHECK(answers(ours("llama2")) == Texts{" a1 </s>", " a2 </s>"});
  CHECK(answers(ours("llama3")) == Texts{"a1<|eot_id|>", "a2<|eot_id|>"});
}

TEST_CASE("answers begin where a generation would") {
  const Chat chat = {{{"user", "u1"}, {"assistant", "a1"}, {"user", "u2"}, {"assistant", "a2"}}};
  const Chat question = {{chat.messages.begin(), chat.messages.begin() + 3}};
  for (const auto& file : {std::string("data/chat_templates/chatml.jinja"), ours("llama2"),
                           ours("llama3"), ours("qwen2"), std::string("data/tokenizer")}) {
    INFO(file);
    const auto chat_template = open(file);
    const RenderedChat whole = chat_template.render_with_answers(chat);
    CHECK(whole.text.substr(0, whole.answers.back().begin) ==
          chat_template.render(question, AddGenerationPrompt::kYes));
  }
}

TEST_CASE("answers are found where published templates rewrite thoughts and calls") {
  const Chat thinking = {{{"user", "u1"},
                          {"assistant", "<think>\nt1\n</think>\n\na1"},
                          {"user", "u2"},
                          {"assistant", "<think>\nt2\n</think>\n\na2"}}};
  // Earlier thoughts are dropped, the last ones shown.
  CHECK(answers_of(open("Qwen-Qwen3-0.6B.jinja"), thinking) ==
        Texts{"a1<|im_end|>", "<think>\nt2\n</think>\n\na2<|im_end|>"});
  // The generation prompt opens thoughts that no turn shows.
  CHECK(answers_of(open("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja"), thinking) ==
        Texts{"\n\na1<｜end▁of▁sentence｜>", "\n\na2<｜end▁of▁sentence｜>"});
  CHECK(answers_of(open("microsoft-Phi-3.5-mini-instruct.jinja"), kHello).empty());
  const Chat call = {{{"user", "w?"},
                      {"assistant", "",
                       R"({"tool_calls": [{"type": "function", "function": {"name": "f",
                           "arguments": {"x": 1}}}]})"},
                      {"tool", "12"},
                      {"assistant", "It is 12."}}};
  CHECK(answers_of(open("Qwen-Qwen2.5-7B-Instruct.jinja"), call) ==
        Texts{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call><|im_end|>",
              "It is 12.<|im_end|>"});
}

TEST_CASE("templates that mark no end of an answer are refused for learning") {
  const Chat chat = {{{"user", "q"}, {"assistant", "a"}}};
  const auto error =
      error_of([&] { open("data/chat_templates/plain.jinja").render_with_answers(chat); });
  CHECK_THAT(error, ContainsSubstring("message 1") && ContainsSubstring("plain.jinja") &&
                        ContainsSubstring("'prompt' and 'response'"));
}

TEST_CASE("templates are found where model directories keep them") {
  const Directory directory;
  const auto rendered = [&](const std::string& choice = "auto") {
    return ChatTemplate::of_model(directory.path(), choice)
        .render(kHello, AddGenerationPrompt::kNo);
  };
  directory.write("chat_template.jinja", "in a file: {{ messages[0].content }}\n");
  CHECK(rendered() == "in a file: hello");
  fs::remove(directory.path() / "chat_template.jinja");
  const Json named = {
      {"chat_template",
       {{{"name", "tool_use"}, {"template", "x"}}, {{"name", "default"}, {"template", "y"}}}}};
  directory.write("tokenizer_config.json", named.dump());
  CHECK(rendered() == "y");
  directory.write("tokenizer_config.json",
                  R"({"bos_token": {"content": "<B>"}, "eos_token": "<E>", "chat_template": "x"})");
  directory.write("mine.jinja", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  CHECK(rendered((directory.path() / "mine.jinja").string()) == "<B>hello<E>");
  CHECK(rendered() == "x");
}

TEST_CASE("a template that cannot be had or run is an error that names the file and the ways out") {
  const Directory directory;
  const auto problem = [&](const std::string& choice = "auto") {
    return error_of([&] { ChatTemplate::of_model(directory.path(), choice); });
  };
  directory.write("tokenizer_config.json", "{}");
  CHECK_THAT(problem(),
             ContainsSubstring("no chat template") && ContainsSubstring("data/chat_templates"));
  CHECK_THAT(problem("chatml"),
             ContainsSubstring("'chatml'") && ContainsSubstring("data/chat_templates"));
  directory.write("tokenizer_config.json", R"({"chat_template": "{% if x %}"})");
  CHECK_THAT(problem(),
             ContainsSubstring("tokenizer_config.json") && ContainsSubstring("not valid Jinja"));
  directory.write("tokenizer_config.json", "{\"chat_template\": ");
  CHECK_THAT(problem(), ContainsSubstring("tokenizer_config.json"));
}

TEST_CASE("named templates that are no texts are an error that names the file") {
  const Directory directory;
  for (const char* entry :
       {R"({"name": 5, "template": "x"})", R"({"name": "default", "template": 5})",
        R"({"name": "default", "template": null})", R"({"name": "default"})",
        R"({"template": "x"})", R"("default")"}) {
    CAPTURE(entry);
    directory.write("tokenizer_config.json", std::string(R"({"chat_template": [)") + entry + "]}");
    CHECK_THAT(error_of([&] { ChatTemplate::of_model(directory.path()); }),
               ContainsSubstring("tokenizer_config.json") && ContainsSubstring("'chat_template'"));
  }
}

TEST_CASE("what a template raises is told") {
  const auto chat_template = open(ours("llama2"));
  CHECK_THAT(error_of([&] { chat_template.render({}, AddGenerationPrompt::kYes); }),
             ContainsSubstring("without messages"));
  const Chat turns = {{{"assistant", "I begin"}}};
  CHECK_THAT(
      error_of([&] { chat_template.render(turns, AddGenerationPrompt::kYes); }),
      ContainsSubstring("user and assistant must take turns") && ContainsSubstring("llama2.jinja"));
}

}  // namespace
}  // namespace taper::testing
