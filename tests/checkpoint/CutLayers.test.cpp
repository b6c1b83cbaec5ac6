// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/CutLayers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "base/Error.hpp"
#include "checkpoint/Pieces.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("a cut model has the layers that were named, and all that is no layer") {
  const Scratch scratch;
  for (const char* name : {"llama_b", "qwen2_a", "qwen3_a"})
    for (const std::vector<int>& layers : {std::vector<int>{1}, {1, 0, 1}, {0, 1}}) {
      INFO(name << ", " << layers.size() << " layers");
      const ModelFiles source(TAPER_GOLDEN_DIR "/models/" + std::string(name));
      const std::filesystem::path directory = scratch / "cut";
      cut_layers(source, layers, directory);
      const ModelFiles cut(directory);
      REQUIRE(cut.config.layers == static_cast<int>(layers.size()));
      const HuggingFaceReader before = source.open_weights(), after = cut.open_weights();
      int same = 0;
      for (const ParamTensor& tensor : cut.table.tensors()) {
        const int from = source.table.index_of(tensor.role,
                                               tensor.layer < 0 ? -1 : layers[tensor.layer]),
                  to = cut.table.index_of(tensor.role, tensor.layer);
        REQUIRE(from >= 0);
        for (int unit = 0; unit < tensor.units; ++unit)
          same += read_piece(source, before, source.table.first_piece(from) + unit) ==
                  read_piece(cut, after, cut.table.first_piece(to) + unit);
      }
      CHECK(same == cut.table.pieces());
      if (layers == std::vector<int>{0, 1})
        CHECK(model_config_json(cut.config, "") == model_config_json(source.config, ""));
    }
}

TEST_CASE("layers that do not exist are refused, and nothing is written") {
  const Scratch scratch;
  const ModelFiles source(TAPER_GOLDEN_DIR "/models/llama_b");
  const std::filesystem::path directory = scratch / "cut";
  for (const std::vector<int>& layers : {std::vector<int>{}, {0, 2}, {-1}})
    CHECK_THROWS_MATCHES(cut_layers(source, layers, directory), Error,
                         MessageMatches(ContainsSubstring("layer")));
  CHECK_FALSE(std::filesystem::exists(directory));
}
