// SPDX-License-Identifier: Apache-2.0
#include "model/ModelConfig.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <type_traits>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

// Typed look-ups in one JSON file with errors that name it.
class Reader {
 public:
  Reader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }

  template <class T>
  T get(const char* key) const {
    TAPER_VALIDATE(has(key), path_ << " has no '" << key << "' (needed for this model family)");
    try {
      if constexpr (std::is_same_v<T, int>) return whole(key);
      return json_[key].get<T>();
    } catch (const Json::exception&) {
      TAPER_FAIL(ExitCode::kBadInput,
                 path_ << ": '" << key << "' is " << json_[key].dump() << " (of the wrong type)");
    }
  }

  template <class T>
  T get(const char* key, const std::type_identity_t<T>& otherwise) const {
    return has(key) ? get<T>(key) : otherwise;
  }

  Reader child(const char* key) const { return {json_[key], path_ + " '" + key + "'"}; }
  const std::string& path() const { return path_; }

 private:
  // The library would cut fractions and high bits off.
  int whole(const char* key) const {
    const Json& number = json_[key];
    const auto value = number.get<double>();
    TAPER_VALIDATE(number.is_number_integer() && value >= std::numeric_limits<int>::min() &&
                       value <= std::numeric_limits<int>::max(),
                   path_ << ": '" << key << "' is " << number.dump()
                         << " (a whole number of at most 31 bits is expected)");
    return number.get<int>();
  }

  const Json& json_;
  std::string path_;
};

ModelFamily family_of(const Reader& r) {
  const auto type = r.get<std::string>("model_type");
  if (type == "llama") return ModelFamily::kLlama;
  if (type == "qwen2") return ModelFamily::kQwen2;
  if (type == "qwen3") return ModelFamily::kQwen3;
  TAPER_FAIL(ExitCode::kBadInput,
             r.path() << ": model_type '" << type
                      << "' is not supported (dense models of llama, qwen2 and qwen3 are)");
}

RopeScaling rope_scaling_of(const Reader& r) {
  RopeScaling scaling;
  // transformers 5 writes one "rope_parameters" where there were "rope_theta" and "rope_scaling".
  const char* key = r.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!r.has(key)) return scaling;
  const Reader s = r.child(key);
  const auto type = s.get<std::string>(s.has("rope_type") ? "rope_type" : "type", "default");
  if (type == "default") return scaling;
  TAPER_VALIDATE(
      type == "linear" || type == "llama3",
      s.path() << ": type '" << type << "' is not supported (default, linear and llama3 are)");
  scaling.factor = s.get<double>("factor");
  scaling.kind = type == "linear" ? RopeScaling::Kind::kLinear : RopeScaling::Kind::kLlama3;
  if (type == "llama3") {
    scaling.low_freq_factor = s.get<double>("low_freq_factor");
    scaling.high_freq_factor = s.get<double>("high_freq_factor");
    scaling.original_max_positions = s.get<double>("original_max_position_embeddings");
  }
  return scaling;
}

// Adds the ids of 'eos_token_id', one or a list; null is none. path names the file.
void add_eos(const Json& json, const std::filesystem::path& path, std::vector<int>& ids) {
  if (!json.contains("eos_token_id") || json["eos_token_id"].is_null()) return;
  const Json& eos = json["eos_token_id"];
  for (const Json& id : eos.is_array() ? eos : Json::array({eos})) {
    // Beyond the range of signed numbers the value comes out negative.
    const std::int64_t value = id.is_number_integer() ? id.get<std::int64_t>() : -1;
    TAPER_VALIDATE(value >= 0 && value <= std::numeric_limits<int>::max(),
                   path_text(path) << ": 'eos_token_id' is " << eos.dump()
                                   << " (a token id or a list of them is expected)");
    ids.push_back(static_cast<int>(value));
  }
}

// Whether 'architectures' is of sequence classification: with one label that is a scalar head.
OutputHead output_of(const Reader& r, const Json& json) {
  constexpr const char* kClassifier = "ForSequenceClassification";
  bool classifies = false;
  for (const auto& name : r.get<std::vector<std::string>>("architectures", {}))
    classifies = classifies || name.ends_with(kClassifier);
  if (!classifies) return OutputHead::kTokens;
  // transformers says the number of labels by their names, and means two if there are none.
  const int labels = r.has("id2label") && json["id2label"].is_object()
                         ? static_cast<int>(json["id2label"].size())
                         : r.get<int>("num_labels", 2);
  TAPER_VALIDATE(labels == 1, r.path() << ": a model for sequence classification with " << labels
                                       << " labels (with one it is a reward model; others are not "
                                          "supported)");
  return OutputHead::kScalar;
}

void refuse_unsupported(const Reader& r, const ModelConfig& config) {
  const auto activation = r.get<std::string>("hidden_act", "silu");
  TAPER_VALIDATE(activation == "silu", r.path()
                                           << ": hidden_act is '" << activation
                                           << "' (only silu is supported); use a model with it");
  const auto refuse = [&](const char* key, const char* why) {
    TAPER_VALIDATE(!r.get<bool>(key, false), r.path() << ": " << key << " is true (" << why
                                                      << "); use a model that has it false");
  };
  refuse("mlp_bias", "biases of the MLP are not supported");
  if (config.family != ModelFamily::kQwen2)
    refuse("attention_bias", "of biases of the attention only those of Qwen2 are supported");
  refuse("use_sliding_window", "attention in a sliding window is not supported");
}

}  // namespace

const char* to_string(ModelFamily family) {
  switch (family) {
    case ModelFamily::kLlama:
      return "llama";
    case ModelFamily::kQwen2:
      return "qwen2";
    case ModelFamily::kQwen3:
      return "qwen3";
  }
  return "";
}

std::vector<std::string> ModelConfig::problems() const {
  std::vector<std::string> list;
  const auto need_positive = [&](int value, const char* name) {
    if (value <= 0)
      list.push_back(std::string(name) + " is " + std::to_string(value) + " (must be positive)");
  };
  // The head of an early exit is a model without layers.
  if (layers < 0)
    list.push_back("num_hidden_layers is " + std::to_string(layers) + " (must not be negative)");
  need_positive(hidden, "hidden_size");
  need_positive(heads, "num_attention_heads");
  need_positive(kv_heads, "num_key_value_heads");
  need_positive(head_dim, "head_dim");
  need_positive(intermediate, "intermediate_size");
  need_positive(vocab, "vocab_size");
  need_positive(max_positions, "max_position_embeddings");
  const auto need_finite = [&](double value, const char* name) {
    if (!(value > 0 && std::isfinite(value))) {
      std::ostringstream text;
      text << name << " is " << value << " (must be positive)";
      list.push_back(text.str());
    }
  };
  need_finite(norm_eps, "rms_norm_eps");
  need_finite(rope_theta, "rope_theta");
  if (rope_scaling.kind != RopeScaling::Kind::kNone)
    need_finite(rope_scaling.factor, "rope factor");
  if (rope_scaling.kind == RopeScaling::Kind::kLlama3) {
    need_finite(rope_scaling.low_freq_factor, "rope low_freq_factor");
    need_finite(rope_scaling.high_freq_factor, "rope high_freq_factor");
    need_finite(rope_scaling.original_max_positions, "rope original_max_position_embeddings");
    if (!(rope_scaling.high_freq_factor > rope_scaling.low_freq_factor))
      list.push_back("rope high_freq_factor must be above low_freq_factor");
  }
  if (kv_heads > 0 && heads % kv_heads != 0)
    list.push_back("num_attention_heads " + std::to_string(heads) +
                   " is not a multiple of num_key_value_heads " + std::to_string(kv_heads));
  if (head_dim % 2 != 0 || head_dim > 256)
    list.push_back("head_dim " + std::to_string(head_dim) + " (must be even and at most 256)");
  return list;
}

std::int64_t ModelConfig::parameters() const {
  const std::int64_t h = hidden, q = std::int64_t{heads} * head_dim,
                     kv = std::int64_t{kv_heads} * head_dim;
  std::int64_t layer = 2 * h * q + 2 * h * kv + 3 * h * intermediate + 2 * h;
  if (qkv_bias) layer += q + 2 * kv;
  if (qk_norm) layer += 2 * head_dim;
  const std::int64_t embedding = std::int64_t{vocab} * h;
  const std::int64_t head = has_scalar_head() ? h : tied ? 0 : embedding;
  return layers * layer + h + embedding + head;
}

ModelConfig read_model_config(const std::filesystem::path& directory) {
  const auto path = directory / "config.json";
  const Json json = read_json_file(path);
  const Reader r(json, path_text(path));
  ModelConfig c;
  c.family = family_of(r);
  c.layers = r.get<int>("num_hidden_layers");
  c.hidden = r.get<int>("hidden_size");
  c.heads = r.get<int>("num_attention_heads");
  c.kv_heads = r.get<int>("num_key_value_heads", c.heads);
  c.head_dim = r.get<int>("head_dim", c.heads > 0 ? c.hidden / c.heads : 0);
  c.intermediate = r.get<int>("intermediate_size");
  c.vocab = r.get<int>("vocab_size");
  c.max_positions = r.get<int>("max_position_embeddings");
  c.norm_eps = r.get<float>("rms_norm_eps");
  c.rope_theta = r.get<double>("rope_theta", 10000.0);
  if (r.has("rope_parameters"))
    c.rope_theta = r.child("rope_parameters").get<double>("rope_theta", c.rope_theta);
  c.rope_scaling = rope_scaling_of(r);
  c.output = output_of(r, json);
  c.tied = r.get<bool>("tie_word_embeddings", false);
  c.qkv_bias = c.family == ModelFamily::kQwen2;
  c.qk_norm = c.family == ModelFamily::kQwen3;
  if (r.has("bos_token_id")) c.bos_id = r.get<int>("bos_token_id");
  if (r.has("pad_token_id")) c.pad_id = r.get<int>("pad_token_id");
  refuse_unsupported(r, c);
  require_no_problems(c.problems(), path_text(path));
  add_eos(json, path, c.eos_ids);
  const auto generation = directory / "generation_config.json";
  if (std::filesystem::exists(generation))
    add_eos(read_json_file(generation), generation, c.eos_ids);
  std::sort(c.eos_ids.begin(), c.eos_ids.end());
  c.eos_ids.erase(std::unique(c.eos_ids.begin(), c.eos_ids.end()), c.eos_ids.end());
  return c;
}

namespace {

// The keys of one label. transformers reads the value at the last token that is not padding: if the
// padding were the end-of-text token, it would read the value of the token before the end.
void add_scalar_keys(nlohmann::ordered_json& j, const ModelConfig& c) {
  j["id2label"]["0"] = "LABEL_0";
  j["label2id"]["LABEL_0"] = 0;
  if (c.pad_id && std::find(c.eos_ids.begin(), c.eos_ids.end(), *c.pad_id) == c.eos_ids.end())
    j["pad_token_id"] = *c.pad_id;
}

}  // namespace

std::string model_config_json(const ModelConfig& c, const std::string& torch_dtype) {
  const char* families[] = {"Llama", "Qwen2", "Qwen3"};
  nlohmann::ordered_json j;
  j["architectures"] = {std::string(families[static_cast<int>(c.family)]) +
                        (c.has_scalar_head() ? "ForSequenceClassification" : "ForCausalLM")};
  j["model_type"] = to_string(c.family);
  j["hidden_size"] = c.hidden;
  j["intermediate_size"] = c.intermediate;
  j["num_hidden_layers"] = c.layers;
  j["num_attention_heads"] = c.heads;
  j["num_key_value_heads"] = c.kv_heads;
  j["head_dim"] = c.head_dim;
  j["vocab_size"] = c.vocab;
  j["max_position_embeddings"] = c.max_positions;
  j["rms_norm_eps"] = c.norm_eps;
  j["rope_theta"] = c.rope_theta;
  if (c.rope_scaling.kind == RopeScaling::Kind::kLinear)
    j["rope_scaling"] = {{"rope_type", "linear"}, {"factor", c.rope_scaling.factor}};
  if (c.rope_scaling.kind == RopeScaling::Kind::kLlama3)
    j["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", c.rope_scaling.factor},
                         {"low_freq_factor", c.rope_scaling.low_freq_factor},
                         {"high_freq_factor", c.rope_scaling.high_freq_factor},
                         {"original_max_position_embeddings",
                          static_cast<int>(c.rope_scaling.original_max_positions)}};
  j["tie_word_embeddings"] = c.tied;
  j["hidden_act"] = "silu";
  if (c.family != ModelFamily::kQwen2) j["attention_bias"] = false;
  if (c.bos_id) j["bos_token_id"] = *c.bos_id;
  if (c.eos_ids.size() == 1)
    j["eos_token_id"] = c.eos_ids.front();
  else if (!c.eos_ids.empty())
    j["eos_token_id"] = c.eos_ids;
  if (c.has_scalar_head()) add_scalar_keys(j, c);
  j["torch_dtype"] = torch_dtype;
  return j.dump(2) + "\n";
}

}  // namespace taper
