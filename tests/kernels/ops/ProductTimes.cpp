// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/ProductTimes.hpp"

namespace taper::test {
namespace {

constexpr int kInputs = 576, kColumns = 49152;

}  // namespace

PackedWeights vocabulary_weights(WeightType type, const Exec& exec) {
  const Floats stored = random_floats(1 << 16, 1);
  Floats weights(static_cast<std::size_t>(kColumns) * kInputs);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = stored[i % stored.size()];
  return pack(weights, kColumns, kInputs, type, PackOrder::kRowsAreColumns, exec);
}

void time_multiply(const Stopwatch& watch, const std::string& name, const Exec& exec,
                   const PackedWeights& weights) {
  for (const int rows : {1, 2, 4, 8, 16, 64, 256}) {
    const Floats x = random_floats(rows * kInputs, 2);
    Floats y(static_cast<std::size_t>(rows) * kColumns);
    watch.measure(
        name + " 576 x 49152, rows " + std::to_string(rows),
        [&] {
          multiply(exec, view(y, rows, kColumns), const_view(x, rows, kInputs), weights.matrix);
        },
        static_cast<double>(weights.bytes.size()), 2.0 * rows * kInputs * kColumns);
  }
}

void time_outer(const Stopwatch& watch, const std::string& name, const Exec& exec) {
  const int rows = 512, n = 1536, m = 576;
  const Floats a = random_floats(std::int64_t{rows} * n, 3), b = random_floats(rows * m, 4);
  Floats gradient(static_cast<std::size_t>(n) * m);
  watch.measure(
      name + " 512 x 1536 x 576",
      [&] {
        accumulate_outer(exec, view(gradient, n, m), const_view(a, rows, n),
                         const_view(b, rows, m));
      },
      0, 2.0 * rows * n * m);
}

}  // namespace taper::test
