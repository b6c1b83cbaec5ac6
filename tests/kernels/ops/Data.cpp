// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/Data.hpp"

#include <memory>

#include "base/FloatMode.hpp"
#include "base/Random.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper::test {

Floats random_floats(std::int64_t n, int seed, double low, double high) {
  RandomStream random(2024, RandomPurpose::kTest, static_cast<std::uint64_t>(n % 1000003),
                      static_cast<std::uint64_t>(seed));
  Floats values(static_cast<std::size_t>(n));
  for (float& value : values) value = static_cast<float>(low + (high - low) * random.uniform());
  return values;
}

reference::Matrix to_matrix(const Floats& values, int rows, int columns) {
  return {rows, columns, to_doubles(values)};
}

reference::Vector to_doubles(const Floats& values) {
  return {values.begin(), values.end()};
}

PackedWeights pack(const Floats& stored, int rows, int columns, WeightType type, PackOrder order,
                   const Exec& exec) {
  const bool by_rows = order == PackOrder::kRowsAreColumns;
  PackedWeights packed;
  packed.matrix.type = type;
  packed.matrix.k = by_rows ? columns : rows;
  packed.matrix.columns = round_up(by_rows ? rows : columns, kPanelColumns);
  packed.matrix.panel_stride = std::int64_t{packed.matrix.k} * kPanelColumns;
  const std::size_t bytes =
      static_cast<std::size_t>(packed.matrix.columns) * packed.matrix.k * bytes_of(type);
  constexpr std::size_t kAlignment = 64;  // as weights of models have it
  std::size_t room = bytes + kAlignment;
  packed.bytes.resize(room);
  void* data = packed.bytes.data();
  std::align(kAlignment, bytes, data, room);
  pack_panels<Exec, float>(exec, data, type, const_view(stored, rows, columns), order);
  Exec().fence();
  packed.matrix.data = data;
  return packed;
}

Floats rounded(const Floats& values, WeightType type) {
  Floats result = values;
  if (type == WeightType::kBf16)
    for (float& value : result) value = to_float(to_bf16(value));
  return result;
}

reference::Vector finite_differences(reference::Vector values,
                                     const std::function<double(const reference::Vector&)>& f,
                                     double step) {
  reference::Vector slopes;
  for (double& value : values) {
    const double at = value;
    value = at + step;
    const double above = f(values);
    value = at - step;
    slopes.push_back((above - f(values)) / (2.0 * step));
    value = at;
  }
  return slopes;
}

double dot(const reference::Vector& a, const reference::Vector& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void flush_denormals() {
  flush_on_this_thread();
  detail::for_each("taper::flush_denormals", HostExec(), HostExec().concurrency(),
                   [](std::int64_t) { flush_on_this_thread(); });
}

}  // namespace taper::test
