// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace taper {

enum class ModelFamily { kLlama, kQwen2, kQwen3 };
const char* to_string(ModelFamily family);

// What a model computes at each position: logits of the next token, or a number (a reward or a
// value).
enum class OutputHead { kTokens, kScalar };

// How the angles of rotary embeddings depend on frequency.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3 };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_positions = 8192;
};

// A dense decoder model as described by a Hugging Face config.json.
struct ModelConfig {
  ModelFamily family = ModelFamily::kLlama;
  int layers = 0;
  int hidden = 0;
  int heads = 0;  // query heads
  int kv_heads = 0;
  int head_dim = 0;
  int intermediate = 0;
  int vocab = 0;  // rows of the embedding
  int max_positions = 0;
  float norm_eps = 1e-5f;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  OutputHead output = OutputHead::kTokens;
  bool tied = false;  // token head = embedding; says nothing if the output is a scalar
  bool qkv_bias = false;
  bool qk_norm = false;
  std::vector<int> eos_ids;  // of config.json and generation_config.json together
  std::optional<int> bos_id, pad_id;

  bool has_scalar_head() const { return output == OutputHead::kScalar; }
  // Whether the embedding is a token head too.
  bool has_tied_head() const { return tied && !has_scalar_head(); }
  std::vector<std::string> problems() const;
  std::int64_t parameters() const;
};

// Reads DIR/config.json (and generation_config.json if there is one). The output is a scalar
// if the architecture is one of sequence classification, with one label. Throws Error naming the
// file and the key for what is missing, contradictory or not supported.
ModelConfig read_model_config(const std::filesystem::path& directory);

// The config.json text that transformers reads.
std::string model_config_json(const ModelConfig& config, const std::string& torch_dtype);

}  // namespace taper
