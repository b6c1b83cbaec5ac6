// SPDX-License-Identifier: Apache-2.0
#include "text/ChatTemplate.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/TextFile.hpp"
#include "base/Utf8.hpp"

namespace taper {
namespace {

using Messages = std::span<const ChatMessage>;

// FNV-1a of the template texts, less one newline at the end (which Jinja drops too), of these
// published models: SmolLM2-Instruct, generic ChatML, Qwen2-Instruct, Qwen2.5-Instruct, Qwen2.5,
// Qwen2.5-Math-Instruct, Qwen3, Llama-2-chat (two spellings), Meta-Llama-3-Instruct,
// Llama-3.1-Instruct; and of data/tokenizer.
const std::map<std::uint64_t, std::string>& known_templates() {
  static const std::map<std::uint64_t, std::string> known = {
      {0xb17d244bb3736773, "taper"},        {0x45ec583d4d25bc3a, "smollm2"},
      {0x88bf4138d5c826f0, "chatml"},       {0x8a87094e0e1e24c5, "qwen2"},
      {0xe642ce246d7f2e3d, "qwen2.5"},      {0x16bc91fc7006a16d, "qwen2.5-base"},
      {0xfbed2ee177a43d8d, "qwen2.5-math"}, {0x2bfdb7aa9754484e, "qwen3"},
      {0xf344eecf1bd3a427, "llama2"},       {0x3e8b632df301bf05, "llama2"},
      {0x0e60067a5537498e, "llama3"},       {0xcc0368e1ffb6b958, "llama3.1"}};
  return known;
}

// ChatML families by the system message they put first where there is none.
const std::map<std::string, std::string>& chatml_defaults() {
  static const std::map<std::string, std::string> defaults = {
      {"chatml", ""},
      {"qwen2", "You are a helpful assistant."},
      {"qwen2.5", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
      {"qwen2.5-base", "You are a helpful assistant."},
      {"qwen2.5-math", "Please reason step by step, and put your final answer within \\boxed{}."},
      {"smollm2", "You are a helpful AI assistant named SmolLM, trained by Hugging Face"}};
  return defaults;
}

const std::vector<std::string>& all_families() {
  static const std::vector<std::string> families = {
      "auto",  "plain",   "chatml", "qwen2",  "qwen2.5",  "qwen2.5-base", "qwen2.5-math",
      "qwen3", "smollm2", "llama2", "llama3", "llama3.1", "taper"};
  return families;
}

std::string ways_out() {
  return "set the chat template option to one of the families (" + join(all_families()) +
         "), to 'plain' with prefixes and suffixes for each role, or give prompts as text";
}

// Without the characters at both ends that Python's str.strip() removes.
std::string strip(std::string_view text) {
  const auto blank = [](char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); };
  std::size_t begin = 0, end = text.size();
  while (begin < end) {
    const CodePoint c = read_utf8(text, begin);
    if (!blank(c.value)) break;
    begin += c.bytes;
  }
  while (end > begin) {
    std::size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!blank(read_utf8(text, last).value)) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string strip_newlines_left(std::string_view text) {
  const auto begin = text.find_first_not_of('\n');
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin));
}

std::string strip_newlines(std::string_view text) {
  const auto end = text.find_last_not_of('\n');
  return end == std::string_view::npos ? std::string()
                                       : strip_newlines_left(text.substr(0, end + 1));
}

// A chat being rendered.
class ChatText {
 public:
  void add(std::string_view text) { chat_.text += text; }
  // A turn: what stands before its content, the content, and what ends it, which an assistant says
  // too.
  void add_turn(bool is_answer, std::string_view before, std::string_view content,
                std::string_view end) {
    add(before);
    const std::size_t begin = chat_.text.size();
    add(content);
    add(end);
    if (is_answer) chat_.answers.push_back({begin, chat_.text.size()});
  }
  RenderedChat finish() { return std::move(chat_); }

 private:
  RenderedChat chat_;
};

constexpr std::string_view kAssistant = "assistant";

void add_chatml_turn(ChatText& text, const std::string& role, const std::string& content) {
  text.add_turn(role == kAssistant, "<|im_start|>" + role + "\n", content, "<|im_end|>");
  text.add("\n");
}

RenderedChat render_chatml(Messages messages, const std::string& default_system,
                           AddGenerationPrompt add) {
  ChatText text;
  if (messages.front().role != "system" && !default_system.empty())
    add_chatml_turn(text, "system", default_system);
  for (const auto& message : messages) add_chatml_turn(text, message.role, message.content);
  if (add == AddGenerationPrompt::kYes) text.add("<|im_start|>assistant\n");
  return text.finish();
}

// An assistant message of Qwen3: earlier turns lose their reasoning, the one behind the last
// question shows it.
std::string qwen3_answer(const std::string& message, bool behind_last_query, bool last) {
  std::string content = message, reasoning;
  const auto first_close = message.find("</think>");
  if (first_close != std::string::npos) {
    content = strip_newlines_left(std::string_view(message).substr(message.rfind("</think>") + 8));
    std::string before = message.substr(0, first_close);
    before.erase(before.find_last_not_of('\n') + 1);
    const auto open = before.rfind("<think>");
    reasoning = strip_newlines_left(open == std::string::npos ? before : before.substr(open + 7));
  }
  if (behind_last_query && (last || !reasoning.empty()))
    content =
        "<think>\n" + strip_newlines(reasoning) + "\n</think>\n\n" + strip_newlines_left(content);
  return content;
}

RenderedChat render_qwen3(Messages messages, AddGenerationPrompt add) {
  const auto is_query = [](const ChatMessage& m) {
    return m.role == "user" &&
           !(m.content.starts_with("<tool_response>") && m.content.ends_with("</tool_response>"));
  };
  std::size_t last_query = messages.size() - 1;
  for (std::size_t i = messages.size(); i-- > 0;) {
    if (!is_query(messages[i])) continue;
    last_query = i;
    break;
  }
  ChatText text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    const bool is_last = i + 1 == messages.size();
    add_chatml_turn(text, role,
                    role == kAssistant ? qwen3_answer(content, i > last_query, is_last) : content);
  }
  if (add == AddGenerationPrompt::kYes) text.add("<|im_start|>assistant\n");
  return text.finish();
}

// The system message stands inside the first user message; there is no generation prompt of its
// own.
RenderedChat render_llama2(Messages messages, const std::string& bos, const std::string& eos) {
  std::optional<std::string> system;
  if (messages.front().role == "system") {
    system = messages.front().content;
    messages = messages.subspan(1);
  }
  ChatText text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool user = messages[i].role == "user";
    TAPER_VALIDATE(user == (i % 2 == 0),
                   "message " << i << " behind the system message is from '" << messages[i].role
                              << "' (the Llama-2 template wants user and assistant in turns)");
    std::string content = messages[i].content;
    if (i == 0 && system) content = "<<SYS>>\n" + *system + "\n<</SYS>>\n\n" + content;
    if (user)
      text.add(bos + "[INST] " + strip(content) + " [/INST]");
    else if (messages[i].role == kAssistant)
      text.add_turn(true, "", " " + strip(content) + " ", eos);
  }
  return text.finish();
}

void add_llama3_turn(ChatText& text, const std::string& role, const std::string& content) {
  text.add_turn(role == kAssistant, "<|start_header_id|>" + role + "<|end_header_id|>\n\n", content,
                "<|eot_id|>");
}

RenderedChat render_llama3(Messages messages, const std::string& bos, bool dated,
                           AddGenerationPrompt add) {
  ChatText text;
  text.add(bos);
  if (dated) {  // Llama-3.1 always has a system turn, with the date its template gives by default
    const bool has_system = messages.front().role == "system";
    add_llama3_turn(text, "system",
                    "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n" +
                        (has_system ? strip(messages.front().content) : ""));
    if (has_system) messages = messages.subspan(1);
  }
  for (const auto& message : messages) add_llama3_turn(text, message.role, strip(message.content));
  if (add == AddGenerationPrompt::kYes)
    text.add("<|start_header_id|>assistant<|end_header_id|>\n\n");
  return text.finish();
}

RenderedChat render_plain(Messages messages, const ChatTemplateOptions& o,
                          AddGenerationPrompt add) {
  ChatText text;
  text.add(o.start);
  for (const auto& [role, content] : messages) {
    if (role == "system")
      text.add_turn(false, o.system_prefix, content, o.system_suffix);
    else if (role == "user")
      text.add_turn(false, o.user_prefix, content, o.user_suffix);
    else
      text.add_turn(true, o.assistant_prefix, content, o.assistant_suffix);
  }
  if (add == AddGenerationPrompt::kYes) text.add(o.assistant_prefix);
  return text.finish();
}

RenderedChat render_taper(Messages messages, AddGenerationPrompt add) {
  ChatTemplateOptions o;
  o.start = "<|bos|>";
  o.system_prefix = "<|system|>";
  o.user_prefix = "<|user|>";
  o.assistant_prefix = "<|assistant|>";
  o.assistant_suffix = "<|eos|>";
  return render_plain(messages, o, add);
}

void check_messages(Messages messages) {
  TAPER_VALIDATE(!messages.empty(),
                 "a chat without messages cannot be rendered (give at least one)");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& role = messages[i].role;
    TAPER_VALIDATE(role == "system" || role == "user" || role == "assistant",
                   "message " << i << " has role '" << role
                              << "' (only system, user and assistant are supported)");
  }
}

std::optional<std::string> read_if_there(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_text_file(path);
}

// A token of tokenizer_config.json: a string or an object with its content.
std::string read_token(const nlohmann::json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && found->at("content").is_string())
    return found->at("content").get<std::string>();
  return {};
}

// The template: a string, or a list of named ones of which "default" counts. path: of the file.
std::optional<std::string> read_template(const nlohmann::json& config,
                                         const std::filesystem::path& path) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return std::nullopt;
  for (const auto& entry : *found) {
    const auto is_text = [&](const char* key) {
      return entry.is_object() && entry.contains(key) && entry.at(key).is_string();
    };
    TAPER_VALIDATE(is_text("name") && is_text("template"),
                   path_text(path) << ": an entry of 'chat_template' has no text as 'name' and "
                                      "'template' (of a list each has both); "
                                   << ways_out());
    if (entry.at("name") == "default") return entry.at("template").get<std::string>();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> ChatTemplateOptions::problems() const {
  for (const auto& known : all_families())
    if (known == family) return {};
  const auto similar = nearest(family, all_families());
  return {"unknown chat template family '" + family + "' (known: " + join(all_families()) + ")" +
          (similar.empty() ? "" : "; did you mean '" + similar + "'?")};
}

ChatTemplate ChatTemplate::from_options(const ChatTemplateOptions& options, std::string bos_token,
                                        std::string eos_token) {
  const auto problems = options.problems();
  TAPER_VALIDATE(problems.empty(), join(problems, "; "));
  TAPER_VALIDATE(
      options.family != "auto",
      "the chat template cannot be recognised without a model directory; " << ways_out());
  ChatTemplate result;
  result.options_ = options;
  result.bos_token_ = std::move(bos_token);
  result.eos_token_ = std::move(eos_token);
  return result;
}

ChatTemplate ChatTemplate::from_text(std::string_view jinja, std::string bos_token,
                                     const std::string& where) {
  if (jinja.ends_with('\n')) jinja.remove_suffix(1);
  ChatTemplateOptions options;
  options.family = family_of_hash(fnv1a(jinja));
  TAPER_VALIDATE(!options.family.empty(), where << ": the chat template is not one of those known "
                                                   "(templates are recognised by their text, "
                                                   "not run); "
                                                << ways_out());
  return from_options(options, std::move(bos_token));
}

std::string ChatTemplate::family_of_hash(std::uint64_t hash) {
  const auto found = known_templates().find(hash);
  return found == known_templates().end() ? std::string() : found->second;
}

ChatTemplate ChatTemplate::from_model_directory(const std::filesystem::path& directory,
                                                const ChatTemplateOptions& options) {
  const auto config_path = directory / "tokenizer_config.json";
  const auto config_text = read_if_there(config_path);
  const auto config = nlohmann::json::parse(config_text.value_or("{}"), nullptr, false);
  TAPER_VALIDATE(config.is_object(), path_text(config_path)
                                         << ": not a JSON object (is the file whole?)");
  const auto bos = read_token(config, "bos_token"), eos = read_token(config, "eos_token");
  if (options.family != "auto") return from_options(options, bos, eos);
  auto where = directory / "chat_template.jinja";
  auto text = read_if_there(where);
  if (!text) {
    where = config_path;
    text = read_template(config, config_path);
  }
  TAPER_VALIDATE(text, path_text(directory)
                           << ": no chat template (neither chat_template.jinja nor the key in "
                              "tokenizer_config.json); "
                           << ways_out());
  auto result = from_text(*text, bos, path_text(where));
  result.eos_token_ = eos;
  return result;
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 AddGenerationPrompt add) const {
  return render_with_answers(messages, add).text;
}

RenderedChat ChatTemplate::render_with_answers(std::span<const ChatMessage> messages,
                                               AddGenerationPrompt add) const {
  check_messages(messages);
  const auto& family = options_.family;
  if (const auto chatml = chatml_defaults().find(family); chatml != chatml_defaults().end())
    return render_chatml(messages, chatml->second, add);
  if (family == "qwen3") return render_qwen3(messages, add);
  if (family == "llama2") return render_llama2(messages, bos_token_, eos_token_);
  if (family == "llama3" || family == "llama3.1")
    return render_llama3(messages, bos_token_, family == "llama3.1", add);
  if (family == "taper") return render_taper(messages, add);
  return render_plain(messages, options_, add);
}

}  // namespace taper
