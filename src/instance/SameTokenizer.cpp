// SPDX-License-Identifier: Apache-2.0
#include "instance/SameTokenizer.hpp"

#include <filesystem>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/TextFile.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

// The part of tokenizer.json in which two tokenizers differ; empty if they give the same ids.
std::string difference(const std::filesystem::path& a, const std::filesystem::path& b) {
  const std::string text = read_text_file(a), other_text = read_text_file(b);
  if (text == other_text) return "";
  const Json one = parse_json(text, path_text(a)), other = parse_json(other_text, path_text(b));
  for (const char* key : {"model", "added_tokens", "normalizer", "pre_tokenizer"}) {
    const Json x = one.contains(key) ? one[key] : Json(),
               y = other.contains(key) ? other[key] : Json();
    if (x != y) return key;
  }
  return "";
}

}  // namespace

void require_same_tokenizer(const ModelFiles& policy, const ModelFiles& model, const Ranks& ranks,
                            const std::string& option, const std::string& advice) {
  const auto theirs = policy.directory / "tokenizer.json", its = model.directory / "tokenizer.json";
  const std::string key = from_rank_0(
      ranks, [&] { return model.has_tokenizer() ? difference(theirs, its) : std::string(); });
  TAPER_VALIDATE(key.empty(), option << " " << path_text(model.directory)
                                     << " has another tokenizer than the policy ('" << key
                                     << "' of " << path_text(its) << " and of " << path_text(theirs)
                                     << " differ; it gets the policy's token ids); " << advice);
  TAPER_VALIDATE(policy.valid_ids() <= model.config.vocab,
                 option << " " << path_text(model.directory) << " has " << model.config.vocab
                        << " embeddings (the policy has ids up to " << policy.valid_ids() - 1
                        << "); " << advice);
}

}  // namespace taper
