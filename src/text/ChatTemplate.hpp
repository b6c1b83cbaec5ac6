// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taper {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

enum class AddGenerationPrompt { kNo, kYes };

// A chat as text, and where in it the assistant speaks.
struct RenderedChat {
  struct Part {
    std::size_t begin = 0, end = 0;  // bytes [begin, end)
  };
  std::string text;
  // One per message of the assistant: what it says behind the generation prompt, the token that
  // ends its turn included (where the template has one).
  std::vector<Part> answers;
};

// How messages become text. Templates of Hugging Face directories are Jinja programs, which are not
// run: known ones are recognised by their text, others are named here by the user.
struct ChatTemplateOptions {
  // "auto" (recognise the model's), "plain" (the prefixes and suffixes below) or a family: chatml,
  // qwen2, qwen2.5, qwen2.5-base, qwen2.5-math, qwen3, smollm2, llama2, llama3, llama3.1, taper.
  std::string family = "auto";
  // For "plain". Text before the first message, and around the messages of each role. The
  // generation prompt is assistant_prefix.
  std::string start;
  std::string system_prefix, system_suffix;
  std::string user_prefix, user_suffix;
  std::string assistant_prefix, assistant_suffix;

  std::vector<std::string> problems() const;
};

// Renders as transformers' apply_chat_template does for messages without tools. Encode the result
// with AddSpecial::kNo: the templates write their special tokens themselves.
class ChatTemplate {
 public:
  // Reads chat_template.jinja or tokenizer_config.json of a model directory. A template that is not
  // known, or none at all, is an Error that names the ways out.
  static ChatTemplate from_model_directory(const std::filesystem::path& directory,
                                           const ChatTemplateOptions& options = {});
  // where stands for the file in messages.
  static ChatTemplate from_text(std::string_view jinja, std::string bos_token,
                                const std::string& where);
  // A family by name, or "plain". The llama families put bos_token and eos_token into the text.
  static ChatTemplate from_options(const ChatTemplateOptions& options, std::string bos_token = "",
                                   std::string eos_token = "");

  // The family of a published template by the FNV-1a hash of its text less one newline at the end;
  // "" where unknown.
  static std::string family_of_hash(std::uint64_t hash);

  std::string render(std::span<const ChatMessage> messages,
                     AddGenerationPrompt add_generation_prompt) const;
  RenderedChat render_with_answers(std::span<const ChatMessage> messages,
                                   AddGenerationPrompt add_generation_prompt) const;

  const std::string& family() const { return options_.family; }

 private:
  ChatTemplate() = default;

  ChatTemplateOptions options_;
  std::string bos_token_, eos_token_;
};

}  // namespace taper
