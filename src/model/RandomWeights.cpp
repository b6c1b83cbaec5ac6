// SPDX-License-Identifier: Apache-2.0
#include "model/RandomWeights.hpp"

#include <algorithm>
#include <cmath>

#include "base/Error.hpp"
#include "base/Random.hpp"

namespace taper {
namespace {

constexpr double kDeviation = 0.02;

bool adds_to_residual(ParamRole role) {
  return role == ParamRole::kOutput || role == ParamRole::kDown;
}

}  // namespace

void draw_piece(const ParamTable& table, int piece, std::uint64_t seed, std::span<float> weights) {
  const int index = table.tensor_of_piece(piece), unit = piece - table.first_piece(index);
  const ParamTensor& tensor = table.tensors()[index];
  TAPER_EXPECT(static_cast<std::int64_t>(weights.size()) == tensor.unit_size());
  if (tensor.role == ParamRole::kScore) return draw_score(seed, weights);
  if (tensor.kind == ShardKind::kReplicated) {  // norms
    std::fill(weights.begin(), weights.end(), 1.0f);
    return;
  }
  const CounterRandom random(seed);
  const double residual = 1.0 / std::sqrt(2.0 * table.config().layers);
  const double deviation = kDeviation * (adds_to_residual(tensor.role) ? residual : 1.0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const bool padding = table.is_padding(index, unit, static_cast<int>(i / tensor.columns));
    const RandomKey key{RandomPurpose::kInit, 0, static_cast<std::uint64_t>(piece), 0, i, 0};
    weights[i] = static_cast<float>((padding ? 0.0 : deviation) * random.normal(key));
  }
}

void draw_score(std::uint64_t seed, std::span<float> weights) {
  const CounterRandom random(seed);
  const double deviation = 1.0 / (static_cast<double>(weights.size()) + 1.0);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] =
        static_cast<float>(deviation * random.normal({RandomPurpose::kScoreInit, 0, 0, 0, i, 0}));
}

}  // namespace taper
