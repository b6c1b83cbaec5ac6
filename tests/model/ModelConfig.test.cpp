// SPDX-License-Identifier: Apache-2.0
#include "model/ModelConfig.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <tuple>

#include "io/Json.hpp"
#include "support/Messages.hpp"

using namespace taper;
namespace fs = std::filesystem;

namespace {

class Directory {
 public:
  Directory() : path_(fs::temp_directory_path() / ("taper-config-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Directory() { fs::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path_ / file) << text;
  }
  ModelConfig read() const { return read_model_config(path_); }
  std::string error() const {
    return test::message_of([&] { read(); });
  }

 private:
  fs::path path_;
};

ModelConfig example() {
  ModelConfig c;
  c.layers = 3;
  c.hidden = 48;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_dim = 16;
  c.intermediate = 100;
  c.vocab = 300;
  c.max_positions = 512;
  c.eos_ids = {1, 7};
  c.bos_id = 2;
  return c;
}

}  // namespace

TEST_CASE("what is written is what is read") {
  const Directory directory;
  for (const auto family : {ModelFamily::kLlama, ModelFamily::kQwen2, ModelFamily::kQwen3})
    for (const auto kind :
         {RopeScaling::Kind::kNone, RopeScaling::Kind::kLinear, RopeScaling::Kind::kLlama3}) {
      ModelConfig c = example();
      c.family = family;
      c.tied = kind == RopeScaling::Kind::kLinear;
      c.rope_scaling.kind = kind;
      c.rope_scaling.factor = kind == RopeScaling::Kind::kNone ? 1.0 : 4.0;
      directory.write("config.json", model_config_json(c, "float32"));
      const ModelConfig got = directory.read();
      CHECK(std::tie(got.family, got.layers, got.hidden, got.heads, got.kv_heads, got.head_dim,
                     got.intermediate, got.vocab,
                     got.tied) == std::tie(c.family, c.layers, c.hidden, c.heads, c.kv_heads,
                                           c.head_dim, c.intermediate, c.vocab, c.tied));
      CHECK(got.rope_scaling.kind == kind);
      CHECK(got.rope_scaling.factor == c.rope_scaling.factor);
      CHECK(got.eos_ids == c.eos_ids);
      CHECK(got.bos_id == c.bos_id);
      CHECK(got.qkv_bias == (family == ModelFamily::kQwen2));
      CHECK(got.qk_norm == (family == ModelFamily::kQwen3));
    }
}

TEST_CASE("ends of text are those of both files") {
  const Directory directory;
  directory.write("config.json", model_config_json(example(), "float32"));
  directory.write("generation_config.json", R"({"eos_token_id": [9, 7]})");
  CHECK(directory.read().eos_ids == std::vector<int>{1, 7, 9});
  directory.write("generation_config.json", R"({"eos_token_id": null})");
  CHECK(directory.read().eos_ids == std::vector<int>{1, 7});
}

TEST_CASE("ends of text that are no ids are named with their file") {
  const Directory directory;
  directory.write("config.json", model_config_json(example(), "float32"));
  for (const std::string ids : {"[7, null]", "\"x\"", "[\"x\"]", "1.5", "-1", "[3000000000]",
                                "18446744073709551615", "{\"a\": 1}"}) {
    INFO(ids);
    directory.write("generation_config.json", "{\"eos_token_id\": " + ids + "}");
    const std::string error = directory.error();
    CHECK(error.find("generation_config.json") != std::string::npos);
    CHECK(error.find("eos_token_id") != std::string::npos);
  }
}

TEST_CASE("what is missing or contradictory is named with its file") {
  const Directory directory;
  const std::string good = model_config_json(example(), "float32");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    directory.write("config.json", text.replace(at, from.size(), to));
    return directory.error();
  };
  CHECK(with("\"hidden_size\"", "\"hidden\"").find("hidden_size") != std::string::npos);
  CHECK(with("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4").find("not a multiple") !=
        std::string::npos);
  CHECK(with("\"head_dim\": 16", "\"head_dim\": 15").find("head_dim 15") != std::string::npos);
  CHECK(with("\"vocab_size\": 300", "\"vocab_size\": 0").find("vocab_size") != std::string::npos);
  CHECK(with("\"model_type\": \"llama\"", "\"model_type\": \"gpt2\"").find("config.json") !=
        std::string::npos);
  CHECK(with("\"hidden_size\": 48", "\"hidden_size\": 48").empty());
}

TEST_CASE("numbers that the model cannot have are named with their key") {
  const Directory directory;
  ModelConfig c = example();
  c.rope_scaling.kind = RopeScaling::Kind::kLlama3;
  const auto good = Json::parse(model_config_json(c, "float32"));
  const auto check = [&](const std::string& key, const char* value) {
    CAPTURE(key, value);
    Json changed = good;
    (changed["rope_scaling"].contains(key) ? changed["rope_scaling"] : changed)[key] =
        Json::parse(value);
    directory.write("config.json", changed.dump());
    const std::string error = directory.error();
    CHECK(error.find("config.json") != std::string::npos);
    CHECK(error.find(key) != std::string::npos);
  };
  for (const char* value : {"2.5", "4294967301", "-4294967291", "18446744073709551615", "1e3",
                            "1e300", "true", "\"3\""})
    check("num_hidden_layers", value);
  check("bos_token_id", "4294967298");
  for (const char* value : {"0", "-1e-6", "1e-60", "\"a\""}) check("rms_norm_eps", value);
  for (const char* value : {"0", "-10000.0"}) check("rope_theta", value);
  for (const char* value : {"0", "-2"}) {
    check("factor", value);
    check("low_freq_factor", value);
    check("high_freq_factor", value);
    check("original_max_position_embeddings", value);
  }
  check("low_freq_factor", "4.0");
}

TEST_CASE("a reward model is one of sequence classification with one label") {
  const Directory directory;
  ModelConfig c = example();
  c.output = OutputHead::kScalar;
  c.pad_id = 3;
  for (const auto family : {ModelFamily::kLlama, ModelFamily::kQwen2, ModelFamily::kQwen3}) {
    c.family = family;
    const std::string text = model_config_json(c, "float32");
    CHECK(text.find("ForSequenceClassification\"") != std::string::npos);
    CHECK(text.find("\"LABEL_0\"") != std::string::npos);
    directory.write("config.json", text);
    CHECK(directory.read().has_scalar_head());
    CHECK(directory.read().pad_id == 3);
  }
  const std::string start = R"({"architectures": ["LlamaForSequenceClassification"], )";
  const std::string good = model_config_json(example(), "float32");
  const auto rest = good.substr(good.find("\"model_type\""));
  directory.write("config.json", start + R"("num_labels": 1, )" + rest);
  CHECK(directory.read().has_scalar_head());
  directory.write("config.json", start + rest);  // transformers means two
  CHECK(directory.error().find("2 labels") != std::string::npos);
  directory.write("config.json", start + R"("id2label": {"0": "a", "1": "b", "2": "c"}, )" + rest);
  CHECK(directory.error().find("3 labels") != std::string::npos);
  directory.write("config.json", good);
  CHECK(!directory.read().has_scalar_head());
}

TEST_CASE("an end of text is never written as the padding of a reward model") {
  // transformers would take the reward from before the padding.
  ModelConfig c = example();
  c.output = OutputHead::kScalar;
  c.pad_id = 7;
  CHECK(model_config_json(c, "float32").find("pad_token_id") == std::string::npos);
}

TEST_CASE("parameters are counted") {
  ModelConfig c = example();
  const std::int64_t layer = 2 * 48 * 96 + 2 * 48 * 32 + 3 * 48 * 100 + 2 * 48;
  CHECK(c.parameters() == 3 * layer + 48 + 2 * 300 * 48);
  c.tied = true;
  CHECK(c.parameters() == 3 * layer + 48 + 300 * 48);
  c.output = OutputHead::kScalar;
  CHECK(c.parameters() == 3 * layer + 48 + 300 * 48 + 48);
}
