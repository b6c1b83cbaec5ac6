// SPDX-License-Identifier: Apache-2.0
#include "text/ChatTemplate.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#include "support/GoldenText.hpp"

namespace taper::testing {
namespace {

std::vector<ChatMessage> read_messages(const nlohmann::json& list) {
  std::vector<ChatMessage> messages;
  for (const auto& m : list)
    messages.push_back({m["role"].get<std::string>(), m["content"].get<std::string>()});
  return messages;
}

ChatTemplate family(const std::string& name, const std::string& bos = "",
                    const std::string& eos = "") {
  ChatTemplateOptions options;
  options.family = name;
  return ChatTemplate::from_options(options, bos, eos);
}

// A model directory that is removed again.
class Directory {
 public:
  Directory() {
    path_ = std::filesystem::temp_directory_path() / ("taper-chat-" + std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST_CASE("rendered chats equal apply_chat_template of transformers") {
  const auto golden = read_golden("chat_cases.json");
  CHECK(golden["templates"].size() >= 12);
  for (const auto& entry : golden["templates"]) {
    const auto chat = family(entry["family"], golden["bos_token"], golden["eos_token"]);
    const auto hash = std::stoull(entry["hash"].get<std::string>(), nullptr, 16);
    CHECK(ChatTemplate::family_of_hash(hash) == chat.family());
    for (std::size_t i = 0; i < golden["conversations"].size(); ++i) {
      const auto messages = read_messages(golden["conversations"][i]);
      INFO(chat.family() << ", conversation " << i);
      for (const auto& [key, add] : {std::pair{"plain", AddGenerationPrompt::kNo},
                                     std::pair{"prompted", AddGenerationPrompt::kYes}}) {
        const auto& expected = entry[key][i];
        if (expected.is_null())
          CHECK_FALSE(error_of([&, add = add] { chat.render(messages, add); }).empty());
        else
          CHECK(chat.render(messages, add) == expected.get<std::string>());
      }
    }
  }
}

TEST_CASE("answers are what the assistant says behind the generation prompt, its end included") {
  const std::vector<ChatMessage> messages = {
      {"user", "u1"}, {"assistant", " a1 "}, {"user", "u2"}, {"assistant", "a2"}};
  const auto answers = [&](const std::string& name) {
    const RenderedChat chat =
        family(name, "<s>", "</s>").render_with_answers(messages, AddGenerationPrompt::kNo);
    std::vector<std::string> texts;
    for (const auto& [begin, end] : chat.answers)
      texts.push_back(chat.text.substr(begin, end - begin));
    return texts;
  };
  using Texts = std::vector<std::string>;
  for (const char* name : {"chatml", "qwen2", "qwen2.5", "qwen2.5-base", "qwen2.5-math", "smollm2"})
    CHECK(answers(name) == Texts{" a1 <|im_end|>", "a2<|im_end|>"});
  CHECK(answers("qwen3") == Texts{" a1 <|im_end|>", "<think>\n\n</think>\n\na2<|im_end|>"});
  CHECK(answers("llama2") == Texts{" a1 </s>", " a2 </s>"});
  CHECK(answers("llama3") == Texts{"a1<|eot_id|>", "a2<|eot_id|>"});
  CHECK(answers("llama3.1") == Texts{"a1<|eot_id|>", "a2<|eot_id|>"});
  CHECK(answers("taper") == Texts{" a1 <|eos|>", "a2<|eos|>"});
  CHECK(answers("plain") == Texts{" a1 ", "a2"});

  // The last one stands where a generation would begin.
  for (const char* name : {"chatml", "qwen3", "smollm2", "llama2", "llama3", "llama3.1", "taper"}) {
    INFO(name);
    const auto chat = family(name, "<s>", "</s>");
    const RenderedChat whole = chat.render_with_answers(messages, AddGenerationPrompt::kNo);
    const std::string prompt = chat.render(std::span(messages).first(3), AddGenerationPrompt::kYes);
    CHECK(whole.text.substr(0, whole.answers.back().begin) == prompt);
  }
}

TEST_CASE("the embedded tokenizer's template is recognised") {
  const auto chat = ChatTemplate::from_model_directory(std::filesystem::path(TAPER_SOURCE_DIR) /
                                                       "data/tokenizer");
  CHECK(chat.family() == "taper");
  const std::vector<ChatMessage> messages = {
      {"user", "1+1="}, {"assistant", "#2"}, {"user", "2+2="}};
  CHECK(chat.render(messages, AddGenerationPrompt::kYes) ==
        "<|bos|><|user|>1+1=<|assistant|>#2<|eos|><|user|>2+2=<|assistant|>");
}

TEST_CASE("templates are found where model directories keep them") {
  // The generic ChatML template, spelled out: recognition is by exact text.
  const std::string chatml =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] "
      "+ '<|im_end|>' + "
      "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  const Directory directory;
  directory.write("chat_template.jinja", chatml + "\n");
  CHECK(ChatTemplate::from_model_directory(directory.path()).family() == "chatml");
  std::filesystem::remove(directory.path() / "chat_template.jinja");
  const nlohmann::json named = {
      {"chat_template",
       {{{"name", "tool_use"}, {"template", "x"}}, {{"name", "default"}, {"template", chatml}}}}};
  directory.write("tokenizer_config.json", named.dump());
  CHECK(ChatTemplate::from_model_directory(directory.path()).family() == "chatml");
  ChatTemplateOptions options;
  options.family = "llama2";
  directory.write("tokenizer_config.json",
                  R"({"bos_token": {"content": "<B>"}, "eos_token": "<E>"})");
  const auto chat = ChatTemplate::from_model_directory(directory.path(), options);
  const std::vector<ChatMessage> messages = {{"user", "q"}, {"assistant", "a"}};
  CHECK(chat.render(messages, AddGenerationPrompt::kNo) == "<B>[INST] q [/INST] a <E>");
}

TEST_CASE("plain templates are prefixes and suffixes") {
  ChatTemplateOptions options;
  options.family = "plain";
  options.start = "^";
  options.user_prefix = "Q: ";
  options.user_suffix = "\n";
  options.assistant_prefix = "A:";
  options.assistant_suffix = ".\n";
  const auto chat = ChatTemplate::from_options(options);
  const std::vector<ChatMessage> messages = {{"user", "x"}, {"assistant", "y"}, {"user", "z"}};
  CHECK(chat.render(messages, AddGenerationPrompt::kYes) == "^Q: x\nA:y.\nQ: z\nA:");
  CHECK(chat.render(messages, AddGenerationPrompt::kNo) == "^Q: x\nA:y.\nQ: z\n");
}

TEST_CASE("an unknown template is an error that names the options") {
  const Directory directory;
  directory.write("tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
  const auto unknown = error_of([&] { ChatTemplate::from_model_directory(directory.path()); });
  CHECK(contains(unknown, "tokenizer_config.json"));
  CHECK(contains(unknown, "plain"));
  CHECK(contains(unknown, "qwen3"));
  directory.write("tokenizer_config.json", "{}");
  CHECK(contains(error_of([&] { ChatTemplate::from_model_directory(directory.path()); }),
                 "no chat template"));
  directory.write("tokenizer_config.json", "{\"chat_template\": ");
  CHECK(contains(error_of([&] { ChatTemplate::from_model_directory(directory.path()); }),
                 "tokenizer_config.json"));
  CHECK(contains(error_of([] { family("qwen4"); }), "did you mean 'qwen"));
  CHECK(contains(error_of([] { family("auto"); }), "recognised"));
}

TEST_CASE("named templates that are no texts are an error that names the file") {
  const Directory directory;
  for (const char* entry :
       {R"({"name": 5, "template": "x"})", R"({"name": "default", "template": 5})",
        R"({"name": "default", "template": null})", R"({"name": "default"})",
        R"({"template": "x"})", R"("default")"}) {
    CAPTURE(entry);
    directory.write("tokenizer_config.json", std::string(R"({"chat_template": [)") + entry + "]}");
    const auto error = error_of([&] { ChatTemplate::from_model_directory(directory.path()); });
    CHECK(contains(error, "tokenizer_config.json"));
    CHECK(contains(error, "'chat_template'"));
  }
}

TEST_CASE("bad conversations are refused") {
  const auto chat = family("chatml");
  CHECK(
      contains(error_of([&] { chat.render({}, AddGenerationPrompt::kYes); }), "without messages"));
  const std::vector<ChatMessage> tool = {{"tool", "5"}};
  CHECK(contains(error_of([&] { chat.render(tool, AddGenerationPrompt::kYes); }), "'tool'"));
}

}  // namespace
}  // namespace taper::testing
