// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "device/Arena.hpp"
#include "kernels/Views.hpp"
#include "model/HuggingFace.hpp"
#include "model/ModelConfig.hpp"
#include "model/ParamTable.hpp"
#include "text/Tokenizer.hpp"

namespace taper {

// Gives the values of a piece (see model/ParamTable.hpp).
using PieceSource = std::function<void(int piece, std::span<float> values)>;

// Which model is wanted of a directory.
struct HeadChoice {
  OutputHead output = OutputHead::kTokens;
  std::uint64_t seed = 0;  // of a scalar head if the directory has none
  bool of_exit = false;    // of an early exit: a model without layers
};

// What a Hugging Face directory says, before any weight is read.
struct ModelFiles {
  // `option` names the directory in errors: a key of a run file, or an option of a command. If
  // `head` asks for a scalar head and the directory has a language model, the head is drawn from
  // the seed. Throws Error if there is no model, if it is not supported, or if `head` asks for
  // tokens and the directory has a model with a scalar head.
  explicit ModelFiles(const std::filesystem::path& directory,
                      const std::string& option = "the model directory",
                      const HeadChoice& head = {});

  std::filesystem::path directory;
  std::string option;
  ModelConfig config;
  ParamTable table;

  // The seed of a scalar head that the directory does not have.
  std::optional<std::uint64_t> score_seed;

  // Opens and checks the weights; throws Error if they are not those of the table.
  HuggingFaceReader open_weights() const { return {directory, table, score_seed}; }

  // Throws Error if the directory has no tokenizer.json: such a model takes and gives token ids
  // only.
  const Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return tokenizer_.has_value(); }
  // Throws Error if there is none; `purpose` says what it is needed for.
  void require_tokenizer(const std::string& purpose) const;
  // Throws Error if sequences of so many tokens exceed the model's context; `limits` names what
  // the user can lower.
  void require_context(std::int64_t tokens, const std::string& limits) const;
  // Ids that can be sampled: those of the tokenizer that the model has rows for; all rows without a
  // tokenizer.
  int valid_ids() const;
  // Cosines and sines for sequences of up to `positions` tokens, (positions, head_dim), in memory
  // of its own that no plan counts (4 MiB for 8,192 positions of 128 values), valid until a call
  // for more positions. Throws Error if the context holds less.
  ConstFloatMatrix rope_table(int positions);

 private:
  std::optional<Tokenizer> tokenizer_;
  std::unique_ptr<Arena> rope_memory_;
  ConstFloatVector rope_;
};

}  // namespace taper
