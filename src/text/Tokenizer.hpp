// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taper {

enum class AddSpecial {
  kNo,
  kYes
};  // the tokens that the file puts around a text, e.g. begin of text
enum class SkipSpecial { kNo, kYes };  // leave special tokens out of the text

// Text to token ids and back, from a Hugging Face tokenizer.json with a BPE model: byte-level BPE
// (Llama-3, Qwen, GPT-2, SmolLM2) and BPE with byte fallback (Llama-2). Ids equal those of the
// Hugging Face library, except for characters newer than the Unicode versions of Oniguruma and
// utf8proc. A component that is not supported is an Error that names it. Immutable: all methods may
// be called from several threads at once. Copies share the tables.
class Tokenizer {
 public:
  static Tokenizer from_file(const std::filesystem::path& tokenizer_json);
  // name stands for the file in messages.
  static Tokenizer from_json(std::string_view json, const std::string& name);

  // Added tokens written out in the text are recognized. Bytes that are not UTF-8 count as U+FFFD,
  // one per maximal ill-formed part (replace_invalid_utf8), as if Python's
  // bytes.decode(errors="replace") had read them.
  std::vector<int> encode(std::string_view text, AddSpecial add_special) const;

  // Always valid UTF-8; ids without a token are left out.
  std::string decode(std::span<const int> ids, SkipSpecial skip_special) const;

  // The raw bytes that one id contributes inside a text, maybe only a part of a character. Joined
  // over a response they are its text up to invalid UTF-8 and up to a space at the very start that
  // some decoders drop.
  std::string token_bytes(int id) const;

  // Largest id + 1, added tokens included. A model may have more rows.
  int vocab_size() const;
  std::optional<int> token_id(std::string_view token) const;
  // Token as written in the file ("Ġthe"); empty for an id without one.
  std::string token(int id) const;
  bool is_special(int id) const;

 private:
  struct Tables;
  explicit Tokenizer(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}

  std::shared_ptr<const Tables> tables_;
};

}  // namespace taper
