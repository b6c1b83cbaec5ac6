// SPDX-License-Identifier: Apache-2.0
#include "kernels/dot_rows.hpp"

#include "kernels/canonical/dot_rows.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/dot_rows.hpp"

namespace taper::test {
namespace {

void compare_case(Report& report, int rows, int h) {
  const std::string what = std::to_string(rows) + " x " + std::to_string(h);
  const Floats x = random_floats(std::int64_t{rows} * h, 1), w = random_floats(h, 2),
               dy = random_floats(rows, 3), start = random_floats(h, 4);
  Floats y(rows, NAN), wanted(rows);
  dot_rows(Exec(), view(y), const_view(x, rows, h), const_view(w));
  for (int r = 0; r < rows; ++r) wanted[r] = canonical::dot_row(&x[r * h], w.data(), h);
  report.expect_equal("dot_rows " + what, y, wanted);
  const reference::Matrix exact = to_matrix(x, rows, h);
  report.expect_close("dot_rows " + what, y, reference::dot_rows(exact, to_doubles(w)), 1e-6);

  Floats dx = x, dw = start, right_dx(x.size()), right_dw = start;  // dx in the memory of x
  dot_rows_backward(Exec(), view(dx, rows, h), view(dw), const_view(dy), const_view(dx, rows, h),
                    const_view(w));
  canonical::dot_rows_backward(right_dx.data(), right_dw.data(), dy.data(), x.data(), w.data(),
                               rows, h);
  report.expect_equal("dot_rows_backward dx " + what, dx, right_dx);
  report.expect_equal("dot_rows_backward dw " + what, dw, right_dw);
  auto g = reference::dot_rows_backward(to_doubles(dy), exact, to_doubles(w));
  for (int c = 0; c < h; ++c) g.dw[c] += start[c];
  report.expect_close("dot_rows_backward dx " + what, dx, g.dx.data, 1e-6);
  report.expect_close("dot_rows_backward dw " + what, dw, g.dw, 1e-4);
}

void compare(Report& report) {
  for (const int rows : {1, 7, 300})
    for (const int h : {1, 63, 64, 200}) compare_case(report, rows, h);
}

void gradient(Report& report) {
  const reference::Matrix x = to_matrix(random_floats(6, 1), 3, 2);
  const reference::Vector w = to_doubles(random_floats(2, 2)), dy = to_doubles(random_floats(3, 3));
  const auto g = reference::dot_rows_backward(dy, x, w);
  report.expect_close("reference dx", g.dx.data,
                      finite_differences(x.data,
                                         [&](const auto& at) {
                                           return dot(dy, reference::dot_rows({3, 2, at}, w));
                                         }),
                      1e-8);
  report.expect_close(
      "reference dw", g.dw,
      finite_differences(w, [&](const auto& at) { return dot(dy, reference::dot_rows(x, at)); }),
      1e-8);
}

void time(const Stopwatch& watch) {
  const int rows = 512, h = 576;
  const Floats x = random_floats(std::int64_t{rows} * h, 1), w = random_floats(h, 2);
  Floats y(rows);
  watch.measure(
      "dot_rows 512 x 576",
      [&] { dot_rows(Exec(), view(y), const_view(x, rows, h), const_view(w)); }, 4.0 * x.size(), 0);
}

}  // namespace

Op dot_rows_op() {
  return {"dot_rows", compare, gradient, time};
}

}  // namespace taper::test
