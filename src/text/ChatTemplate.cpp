// SPDX-License-Identifier: Apache-2.0
#include "text/ChatTemplate.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/TextFile.hpp"
#include "text/detail/Jinja.hpp"

namespace taper {
namespace {

using nlohmann::ordered_json;

constexpr const char* kWaysOut =
    "name a file with a template (--chat-template, in run files Data/Chat Template; "
    "data/chat_templates has some), or give prompts as text";

std::optional<std::string> read_if_there(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_text_file(path);
}

ordered_json read_tokenizer_config(const std::filesystem::path& path) {
  auto config = ordered_json::parse(read_if_there(path).value_or("{}"), nullptr, false);
  TAPER_VALIDATE(config.is_object(), path_text(path)
                                         << ": not a JSON object (is the file complete?)");
  return config;
}

// Those that are a text or an object with its content.
std::map<std::string, std::string> read_special_tokens(const ordered_json& config) {
  std::map<std::string, std::string> tokens;
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) tokens[key] = value.get<std::string>();
    if (value.is_object() && value.contains("content") && value.at("content").is_string())
      tokens[key] = value.at("content").get<std::string>();
  }
  return tokens;
}

std::optional<std::string> read_template(const ordered_json& config,
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
                                   << kWaysOut);
    if (entry.at("name") == "default") return entry.at("template").get<std::string>();
  }
  return std::nullopt;
}

ordered_json as_json(const ChatMessage& message) {
  ordered_json object = {{"role", message.role}, {"content", message.content}};
  if (!message.other.empty()) object.update(ordered_json::parse(message.other));
  return object;
}

Chat first_messages(const Chat& chat, std::size_t count) {
  return {{chat.messages.begin(), chat.messages.begin() + static_cast<std::ptrdiff_t>(count)},
          chat.tools};
}

std::string_view without_blanks_at_end(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// A word that is not in the text.
std::string foreign_word(const std::string& text) {
  std::string word = "TaperAnswer";
  while (text.find(word) != std::string::npos) word += 'x';
  return word;
}

// What surrounds the content of one message.
struct Frame {
  std::string before, after;
};

// Finds answers in a rendered chat. A template is a program: where it puts an answer shows only
// in what it renders of parts of the chat, and of the chat with a word in place of the answer.
class AnswerFinder {
 public:
  AnswerFinder(const ChatTemplate& chat_template, const Chat& chat, const std::string& text)
      : template_(chat_template), chat_(chat), text_(text), word_(foreign_word(text)) {}

  std::optional<RenderedChat::Part> find(std::size_t message) const {
    const auto prompt = render(first_messages(chat_, message), AddGenerationPrompt::kYes);
    const auto turn = frame_of(first_messages(chat_, message + 1), message);
    const auto whole = frame_of(chat_, message);
    const auto begin = begin_of(prompt, whole);
    const auto end = end_of(turn, whole, message);
    if (!begin || !end || *end < *begin) return std::nullopt;
    return RenderedChat::Part{*begin, *end};
  }

 private:
  // Some templates refuse parts of a chat.
  std::optional<std::string> render(const Chat& chat, AddGenerationPrompt add) const {
    if (chat.messages.empty()) return std::nullopt;
    try {
      return template_.render(chat, add);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::optional<Frame> frame_of(Chat chat, std::size_t message) const {
    chat.messages[message].content = word_;
    const auto text = render(chat, AddGenerationPrompt::kNo);
    const auto place = text ? text->find(word_) : std::string::npos;
    if (place == std::string::npos) return std::nullopt;
    return Frame{text->substr(0, place), text->substr(place + word_.size())};
  }

  // Where generation would begin; else, as where the generation prompt opens thoughts that earlier
  // turns have lost, where the content does.
  std::optional<std::size_t> begin_of(const std::optional<std::string>& prompt,
                                      const std::optional<Frame>& whole) const {
    if (prompt && text_.starts_with(*prompt)) return prompt->size();
    if (whole && text_.starts_with(whole->before)) return whole->before.size();
    return std::nullopt;
  }

  // Behind the content and what ends a turn, less blanks that follow: a turn's last token is the
  // one that ends it. If the content is not shown (calls of tools): at the end of the turn.
  std::optional<std::size_t> end_of(const std::optional<Frame>& turn,
                                    const std::optional<Frame>& whole, std::size_t message) const {
    if (turn && whole && text_.ends_with(whole->after)) {
      const auto mark = without_blanks_at_end(turn->after);
      if (mark.empty() || !whole->after.starts_with(mark)) return std::nullopt;
      return text_.size() - whole->after.size() + mark.size();
    }
    const auto part = render(first_messages(chat_, message + 1), AddGenerationPrompt::kNo);
    if (!part || !text_.starts_with(*part)) return std::nullopt;
    return without_blanks_at_end(*part).size();
  }

  const ChatTemplate& template_;
  const Chat& chat_;
  const std::string& text_;
  std::string word_;
};

}  // namespace

ChatTemplate::ChatTemplate(const std::string& jinja,
                           std::map<std::string, std::string> special_tokens,
                           const std::string& where)
    : jinja_(std::make_shared<const detail::Jinja>(jinja, where)),
      special_tokens_(std::move(special_tokens)),
      where_(where) {}

ChatTemplate ChatTemplate::of_model(const std::filesystem::path& directory,
                                    const std::string& choice) {
  const auto config_path = directory / "tokenizer_config.json";
  const auto config = read_tokenizer_config(config_path);
  auto where = choice == "auto" ? directory / "chat_template.jinja" : std::filesystem::path(choice);
  auto text = read_if_there(where);
  if (choice == "auto" && !text) {
    where = config_path;
    text = read_template(config, config_path);
    TAPER_VALIDATE(text, path_text(directory)
                             << ": no chat template (neither chat_template.jinja nor the key in "
                                "tokenizer_config.json); "
                             << kWaysOut);
  }
  TAPER_VALIDATE(text, "the chat template is '"
                           << choice << "' (neither auto nor a file that is there); " << kWaysOut);
  return ChatTemplate(*text, read_special_tokens(config), path_text(where));
}

std::string ChatTemplate::render(const Chat& chat, AddGenerationPrompt add) const {
  TAPER_VALIDATE(!chat.messages.empty(),
                 "a chat without messages cannot be rendered (give at least one)");
  ordered_json variables = ordered_json::object();
  for (const auto& [name, token] : special_tokens_) variables[name] = token;
  for (const ChatMessage& message : chat.messages)
    variables["messages"].push_back(as_json(message));
  variables["tools"] = chat.tools.empty() ? ordered_json() : ordered_json::parse(chat.tools);
  variables["add_generation_prompt"] = add == AddGenerationPrompt::kYes;
  return jinja_->render(variables);
}

RenderedChat ChatTemplate::render_with_answers(const Chat& chat) const {
  RenderedChat rendered{render(chat, AddGenerationPrompt::kNo), {}};
  const AnswerFinder finder(*this, chat, rendered.text);
  for (std::size_t i = 0; i < chat.messages.size(); ++i) {
    if (chat.messages[i].role != "assistant") continue;
    const auto part = finder.find(i);
    TAPER_VALIDATE(part, "the answer in message "
                             << i << " cannot be located in the rendered chat (the chat template "
                             << where_
                             << " does not mark the end of an answer, or changes the text before "
                                "it); write the example with 'prompt' and 'response' instead");
    rendered.answers.push_back(*part);
  }
  return rendered;
}

}  // namespace taper
