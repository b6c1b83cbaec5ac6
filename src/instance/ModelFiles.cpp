// SPDX-License-Identifier: Apache-2.0
#include "instance/ModelFiles.hpp"

#include <algorithm>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "io/InputPath.hpp"
#include "kernels/copy.hpp"
#include "model/RopeTable.hpp"

namespace taper {
namespace {

const std::filesystem::path& checked(const std::filesystem::path& directory,
                                     const std::string& option) {
  require_model_directory(option, directory);
  return directory;
}

// The configuration of the directory's model with the head that is wanted.
ModelConfig configured(const std::filesystem::path& dir, const std::string& option,
                       const HeadChoice& head) {
  const OutputHead wanted = head.output;
  ModelConfig config = read_model_config(dir);
  TAPER_VALIDATE(
      config.layers > 0 || head.of_exit,
      option << " " << path_text(dir)
             << " has no layers according to its config.json (it is the head of an early "
                "exit); name a language model");
  TAPER_VALIDATE(wanted == OutputHead::kScalar || !config.has_scalar_head(),
                 option << " " << path_text(dir)
                        << " is a reward model according to its config.json (it computes a number, "
                           "not tokens); name a language model");
  config.output = wanted;
  return config;
}

}  // namespace

ModelFiles::ModelFiles(const std::filesystem::path& dir, const std::string& named_by,
                       const HeadChoice& head)
    : directory(checked(dir, named_by)),
      option(named_by),
      config(configured(dir, option, head)),
      table(config) {
  if (config.has_scalar_head() && !read_model_config(dir).has_scalar_head()) score_seed = head.seed;
  const auto file = dir / "tokenizer.json";
  if (!std::filesystem::exists(file)) return;
  tokenizer_ = Tokenizer::from_file(file);
  TAPER_VALIDATE(tokenizer_->vocab_size() <= config.vocab,
                 path_text(file) << " has ids up to " << tokenizer_->vocab_size() - 1
                                 << " (vocab_size in config.json is " << config.vocab
                                 << "); the tokenizer does not match the model");
}

const Tokenizer& ModelFiles::tokenizer() const {
  TAPER_VALIDATE(tokenizer_, path_text(directory)
                                 << " has no tokenizer.json (needed for text); add it, or give "
                                 << "prompts as {\"tokens\": [ids]}");
  return *tokenizer_;
}

void ModelFiles::require_tokenizer(const std::string& purpose) const {
  TAPER_VALIDATE(tokenizer_, path_text(directory / "tokenizer.json")
                                 << " is missing (" << purpose
                                 << "); copy it from the source of the model");
}

void ModelFiles::require_context(std::int64_t tokens, const std::string& limits) const {
  TAPER_VALIDATE(tokens <= config.max_positions,
                 "sequences of up to " << tokens << " tokens exceed the context of " << option
                                       << " " << path_text(directory) << " ("
                                       << config.max_positions << " positions); lower " << limits);
}

int ModelFiles::valid_ids() const {
  return tokenizer_ ? std::min(tokenizer_->vocab_size(), config.vocab) : config.vocab;
}

ConstFloatMatrix ModelFiles::rope_table(int positions) {
  require_context(positions, "the length limits");
  if (static_cast<std::int64_t>(rope_.size()) < std::int64_t{positions} * config.head_dim) {
    const std::vector<float> table = make_rope_table(config, positions);
    const std::string name = "rope table";
    MemoryPlan plan;
    plan.add(name, MemoryPhase::kAlways, arena_bytes(4 * std::ssize(table)));
    rope_memory_ = std::make_unique<Arena>(plan);
    const FloatVector rope(rope_memory_->take<float>(name, MemoryPhase::kAlways, std::ssize(table)),
                           table.size());
    copy_from_host(Exec(), rope, std::span(table));
    rope_ = rope;
  }
  return ConstFloatMatrix(rope_.data(), positions, config.head_dim);
}

}  // namespace taper
