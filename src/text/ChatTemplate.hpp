// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace taper {
namespace detail {
class Jinja;
}

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", "tool", ...
  std::string content;  // "" also if an assistant only calls tools
  // What else the message has ("tool_calls", "name", ...), as the text of a JSON object; "" for
  // none.
  std::string other = {};

  bool operator==(const ChatMessage&) const = default;
};

struct Chat {
  std::vector<ChatMessage> messages;
  std::string tools = {};  // that the assistant may call, as the text of a JSON list; "" for none

  bool operator==(const Chat&) const = default;
};

enum class AddGenerationPrompt { kNo, kYes };

// A chat as text, and where in it the assistant speaks.
struct RenderedChat {
  struct Part {
    std::size_t begin = 0, end = 0;  // bytes [begin, end)
  };
  std::string text;
  // One per message of the assistant: what it says after the generation prompt, up to and including
  // the token that ends its turn.
  std::vector<Part> answers;
};

// How chats become text: a Jinja program, run as transformers' apply_chat_template runs it. Encode
// the result with AddSpecial::kNo: templates write their special tokens themselves.
class ChatTemplate {
 public:
  // choice: "auto", which is chat_template.jinja of the model's directory, else the key
  // chat_template of its tokenizer_config.json (of a list the one named "default"), or the path of
  // a file with a template. Special tokens are those of tokenizer_config.json. Throws Error that
  // names the file and the ways out.
  static ChatTemplate of_model(const std::filesystem::path& directory,
                               const std::string& choice = "auto");
  // special_tokens: by the names that templates use, such as bos_token. `where` names the template
  // in errors.
  ChatTemplate(const std::string& jinja, std::map<std::string, std::string> special_tokens,
               const std::string& where);

  // Throws Error with what the template raises, and for a chat without messages.
  std::string render(const Chat& chat, AddGenerationPrompt add_generation_prompt) const;

  // The whole chat without generation prompt. Throws Error also if an answer cannot be told from
  // what surrounds it, or nothing marks its end.
  RenderedChat render_with_answers(const Chat& chat) const;

 private:
  std::shared_ptr<const detail::Jinja> jinja_;
  std::map<std::string, std::string> special_tokens_;
  std::string where_;
};

}  // namespace taper
