// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope.hpp"

#include <cmath>

#include "kernels/canonical/rope.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/rope.hpp"

namespace taper::test {
namespace {

constexpr int kPositions = 500;
constexpr double kAngleError = 3e-5;  // angles up to 500 are rounded to float before cos and sin

// (positions, head_dim): cosines, then sines, of angles rounded to float as in the model's table.
Floats make_table(const reference::Vector& frequencies) {
  Floats table;
  for (int p = 0; p < kPositions; ++p)
    for (const bool cosine : {true, false})
      for (const double f : frequencies) {
        const float angle = static_cast<float>(p) * static_cast<float>(f);
        table.push_back(cosine ? std::cos(angle) : std::sin(angle));
      }
  return table;
}

void compare_case(Report& report, int rows, const RopeShape& shape,
                  const reference::Vector& frequencies) {
  const int half = shape.head_dim / 2, width = shape.heads * shape.stride;
  const Floats table = make_table(frequencies), x = random_floats(rows * width, 1);
  Staged<std::int32_t> positions;
  for (int r = 0; r < rows; ++r) positions.push_back((r * 37 + 3) % kPositions);
  for (const RopeDirection direction : {RopeDirection::kForward, RopeDirection::kBackward}) {
    const double sign = direction == RopeDirection::kForward ? 1.0 : -1.0;
    Floats y = x, expected = x;
    rope(Exec(), view(y, rows, width), const_view(positions),
         const_view(table, kPositions, shape.head_dim), shape, direction);
    const std::string what = "rope " + std::to_string(rows) + " rows, head_dim " +
                             std::to_string(shape.head_dim) + (sign > 0 ? "" : " backward");
    for (int r = 0; r < rows; ++r)
      for (int h = 0; h < shape.heads; ++h) {
        float* head = &expected[r * width + h * shape.stride];
        const float* angles = &table[positions[r] * shape.head_dim];
        canonical::rotate(head, angles, angles + half, shape.head_dim, static_cast<float>(sign));
      }
    report.expect_equal(what, y, expected);
    for (int h = 0; h < shape.heads; ++h) {
      reference::Matrix head(rows, shape.head_dim);
      Floats got;
      for (int r = 0; r < rows; ++r)
        for (int d = 0; d < shape.head_dim; ++d) {
          head(r, d) = x[r * width + h * shape.stride + d];
          got.push_back(y[r * width + h * shape.stride + d]);
        }
      const reference::Vector at(positions.begin(), positions.end());
      report.expect_close(what, got, reference::rotate(head, at, frequencies, sign).data,
                          kAngleError);
    }
  }
}

void compare(Report& report) {
  for (const int head_dim : {2, 16, 24, 64, 80, 128})
    for (const int rows : {1, 5, 70})
      compare_case(report, rows, {3, round_up(head_dim, 64), head_dim},
                   reference::rope_frequencies(head_dim, 1e4));
  compare_case(report, 9, {2, 64, 64}, reference::rope_frequencies_linear(64, 1e4, 4.0));
  compare_case(report, 9, {2, 64, 64},
               reference::rope_frequencies_llama3(64, 5e5, 8.0, 1.0, 4.0, 8192));
}

void gradient(Report& report) {
  const reference::Vector positions = {0, 3, 11},
                          frequencies = reference::rope_frequencies(6, 100.0);
  const reference::Matrix x = to_matrix(random_floats(18, 1), 3, 6),
                          dy = to_matrix(random_floats(18, 2), 3, 6);
  report.expect_close(
      "reference dx", reference::rotate(dy, positions, frequencies, -1.0).data,
      finite_differences(
          x.data,
          [&](const auto& at) {
            return dot(dy.data, reference::rotate({3, 6, at}, positions, frequencies).data);
          }),
      1e-8);
}

void time(const Stopwatch& watch) {
  const RopeShape shape{9, 64, 64};
  const Floats table = make_table(reference::rope_frequencies(64, 1e4));
  for (const int rows : {1, 256}) {
    const Staged<std::int32_t> positions(rows, 7);
    Floats x = random_floats(rows * 576, 1);
    watch.measure(
        "rope 9 heads of 64, rows " + std::to_string(rows),
        [&] {
          rope(Exec(), view(x, rows, 576), const_view(positions), const_view(table, kPositions, 64),
               shape, RopeDirection::kForward);
        },
        8.0 * x.size(), 0);
  }
}

}  // namespace

Op rope_op() {
  return {"rope", compare, gradient, time};
}

}  // namespace taper::test
