// SPDX-License-Identifier: Apache-2.0
#include "model/ScalarHead.hpp"

#include <algorithm>
#include <cmath>

#include "base/Error.hpp"
#include "kernels/Staging.hpp"
#include "kernels/copy.hpp"
#include "kernels/dot_rows.hpp"
#include "kernels/norm.hpp"
#include "model/Activations.hpp"

namespace taper {

std::int64_t ScalarHead::floats(const ParamTable& table, int chunk_rows) {
  const std::int64_t rows = chunk_rows;
  return 2 * aligned_floats(rows * table.config().hidden) + aligned_floats(rows);
}

ScalarHead::ScalarHead(const ParamTable& table, int chunk_rows, float* memory)
    : hidden_(table.config().hidden), eps_(table.config().norm_eps), chunk_rows_(chunk_rows) {
  const std::int64_t matrix = aligned_floats(std::int64_t{chunk_rows} * hidden_);
  gathered_ = memory;
  normed_ = gathered_ + matrix;
  inv_ = normed_ + matrix;
}

FloatMatrix ScalarHead::norm_rows(const Exec& exec, const ModelView& view, ConstFloatMatrix hidden,
                                  std::span<const int> rows) const {
  const int n = static_cast<int>(rows.size());
  const StagedInput<int> on_device(rows);
  gather_rows(exec, make_matrix(gathered_, n, hidden_), hidden, on_device.view());
  const FloatMatrix normed = make_matrix(normed_, n, hidden_);
  rmsnorm(exec, flat(normed), FloatVector(inv_, n),
          ConstFloatVector(gathered_, std::size_t(n) * hidden_), view.final_norm(),
          {hidden_, hidden_, eps_});
  return normed;
}

void ScalarHead::values(const Exec& exec, const ModelView& view, ConstFloatMatrix hidden,
                        std::span<const int> rows, std::span<float> value) const {
  const std::size_t chunk = static_cast<std::size_t>(chunk_rows_);
  for (std::size_t at = 0; at < rows.size(); at += chunk) {
    const std::size_t size = std::min(chunk, rows.size() - at);
    const FloatMatrix normed = norm_rows(exec, view, hidden, rows.subspan(at, size));
    Staged<float> chunk_values(size);
    dot_rows(exec, staging_view(chunk_values), normed, view.score());
    exec.fence();
    std::copy(chunk_values.begin(), chunk_values.end(), value.begin() + at);
    for (std::size_t i = 0; i < size; ++i)
      if (!std::isfinite(value[at + i]))
        TAPER_FAIL(ExitCode::kFailure,
                   "the value of a token is not finite (row "
                       << rows[at + i] << "); the weights have diverged or the input is damaged");
  }
}

void ScalarHead::backward(const Exec& exec, const ModelView& view, ConstFloatMatrix hidden,
                          std::span<const int> rows, std::span<const float> slopes,
                          FloatMatrix d_hidden, const GradientView& d_score,
                          const GradientView& d_final_norm) const {
  const std::size_t chunk = static_cast<std::size_t>(chunk_rows_);
  for (std::size_t at = 0; at < rows.size(); at += chunk) {
    const std::size_t size = std::min(chunk, rows.size() - at);
    const FloatMatrix normed = norm_rows(exec, view, hidden, rows.subspan(at, size));
    // The normed values are no longer needed: now their gradient.
    const StagedInput<float> slopes_here(slopes.subspan(at, size));
    dot_rows_backward(exec, normed, d_score, slopes_here.view(), normed, view.score());
    rmsnorm_backward(exec, flat(normed), d_final_norm, flat(normed),
                     ConstFloatVector(gathered_, size * hidden_), ConstFloatVector(inv_, size),
                     view.final_norm(), {hidden_, hidden_, eps_}, Accumulate::kNo);
    const StagedInput<int> on_device(rows.subspan(at, size));
    add_rows(exec, d_hidden, normed, on_device.view());
    exec.fence();
  }
}

}  // namespace taper
