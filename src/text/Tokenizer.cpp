// SPDX-License-Identifier: Apache-2.0
#include "text/Tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/TextFile.hpp"
#include "base/Utf8.hpp"
#include "text/detail/AddedTokens.hpp"
#include "text/detail/BpeModel.hpp"
#include "text/detail/Normalizer.hpp"
#include "text/detail/PostProcessor.hpp"
#include "text/detail/PreTokenizer.hpp"
#include "text/detail/TokenDecoder.hpp"

namespace taper {

struct Tokenizer::Tables {
  detail::Normalizer normalizer;
  detail::AddedTokens added;
  detail::PreTokenizer pre_tokenizer;
  detail::BpeModel model;
  detail::PostProcessor post_processor;
  detail::TokenDecoder decoder;
  std::vector<std::string> bytes;  // token_bytes by id
  int vocab_size = 0;

  explicit Tables(const detail::Component& top)
      : normalizer(top.child("normalizer")),
        added(top, normalizer),
        pre_tokenizer(top.child("pre_tokenizer")),
        model(top.child("model")),
        post_processor(top.child("post_processor")),
        decoder(top.child("decoder")) {
    vocab_size = model.size();
    for (const auto& token : added.tokens()) {
      const auto in_model = model.token_id(token.content);
      if (in_model && *in_model != token.id)
        top.fail("added token '" + token.content + "' has id " + std::to_string(token.id) +
                 " but id " + std::to_string(*in_model) + " in the vocabulary");
      vocab_size = std::max(vocab_size, token.id + 1);
    }
    bytes.resize(vocab_size);
    for (int id = 0; id < vocab_size; ++id)
      if (const auto* text = token(id)) bytes[id] = decoder.piece_bytes(*text);
  }

  const std::string* token(int id) const {
    if (const auto* found = added.find(id)) return &found->content;
    return model.token(id);
  }

  void encode_text(std::string_view text, bool at_start, detail::BpeModel::Scratch& scratch,
                   std::vector<int>& ids) const {
    if (text.empty()) return;
    const std::string normal = normalizer.apply(std::string(text));
    for (const auto& segment : added.split_normalized(normal)) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
        continue;
      }
      detail::Piece piece{normal.substr(segment.span.begin, segment.span.end - segment.span.begin),
                          at_start && segment.span.begin == 0};
      for (const auto& part : pre_tokenizer.apply(std::move(piece)))
        model.encode(part.text, scratch, ids);
    }
  }
};

Tokenizer Tokenizer::from_file(const std::filesystem::path& tokenizer_json) {
  return from_json(read_text_file(tokenizer_json), path_text(tokenizer_json));
}

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& name) {
  const auto document = nlohmann::json::parse(json, nullptr, false);
  TAPER_VALIDATE(!document.is_discarded(),
                 name << ": not valid JSON (is it a complete tokenizer.json?)");
  const detail::Component top(document, name, "");
  if (!document.is_object() || !top.has("model"))
    top.fail("key 'model' is missing (not a tokenizer.json)");
  return Tokenizer(std::make_shared<const Tables>(top));
}

std::vector<int> Tokenizer::encode(std::string_view text, AddSpecial add_special) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  std::vector<int> ids;
  detail::BpeModel::Scratch scratch;
  for (const auto& segment : tables_->added.split_raw(text)) {
    const auto part = text.substr(segment.span.begin, segment.span.end - segment.span.begin);
    if (segment.id >= 0)
      ids.push_back(segment.id);
    else
      tables_->encode_text(part, segment.span.begin == 0, scratch, ids);
  }
  return add_special == AddSpecial::kYes ? tables_->post_processor.apply(std::move(ids)) : ids;
}

std::string Tokenizer::decode(std::span<const int> ids, SkipSpecial skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int id : ids) {
    const auto* token = tables_->token(id);
    if (!token || (skip_special == SkipSpecial::kYes && is_special(id))) continue;
    tokens.push_back(*token);
  }
  return tables_->decoder.decode(std::move(tokens));
}

std::string Tokenizer::token_bytes(int id) const {
  return id >= 0 && id < tables_->vocab_size ? tables_->bytes[id] : std::string();
}

int Tokenizer::vocab_size() const {
  return tables_->vocab_size;
}

std::optional<int> Tokenizer::token_id(std::string_view token) const {
  if (const auto* added = tables_->added.find(token)) return added->id;
  return tables_->model.token_id(token);
}

std::string Tokenizer::token(int id) const {
  const auto* token = tables_->token(id);
  return token ? *token : std::string();
}

bool Tokenizer::is_special(int id) const {
  const auto* added = tables_->added.find(id);
  return added && added->special;
}

}  // namespace taper
