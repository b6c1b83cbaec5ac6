// SPDX-License-Identifier: Apache-2.0
//
// Fixed-point sums of gradients: every kernel adds what it would add to plain floats that are zero,
// rounded once.
#include "kernels/gradient.hpp"

#include <functional>
#include <limits>
#include <numeric>

#include "kernels/activation.hpp"
#include "kernels/adamw.hpp"
#include "kernels/copy.hpp"
#include "kernels/dot_rows.hpp"
#include "kernels/norm.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/product.hpp"

namespace taper::test {
namespace {

using Sums = Staged<Fixed>;

GradientView view_of(Sums& sums, std::int64_t rows, std::int64_t columns) {
  return {sums.data(), GradientType::kFixed, rows, columns};
}

std::vector<std::int64_t> units(const Sums& sums) {
  std::vector<std::int64_t> list;
  for (const Fixed& sum : sums) list.push_back(sum.units);
  return list;
}

Sums some_sums(std::int64_t n) {
  Sums sums(static_cast<std::size_t>(n));
  const Floats start = random_floats(n, 99, -100.0, 100.0);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = to_fixed(start[i]);
  return sums;
}

// `kernel` twice, with plain floats and with fixed-point sums of (rows, columns).
void compare_sums(Report& report, const std::string& what, std::int64_t rows, std::int64_t columns,
                  const std::function<void(const GradientView&)>& kernel) {
  const std::int64_t n = rows * columns;
  Floats terms(static_cast<std::size_t>(n));
  Sums sums = some_sums(n), wanted = sums;
  kernel(view(terms, rows, columns));
  kernel(view_of(sums, rows, columns));
  Exec().fence();
  for (std::size_t i = 0; i < terms.size(); ++i) wanted[i] = wanted[i] + to_fixed(terms[i]);
  report.expect_equal("fixed " + what, units(sums), units(wanted));
}

void compare_kernels(Report& report, int rows, int n, int m) {
  const std::string shape =
      std::to_string(rows) + " x " + std::to_string(n) + " x " + std::to_string(m);
  const Floats a = random_floats(std::int64_t{rows} * n, 1),
               b = random_floats(std::int64_t{rows} * m, 2), w = random_floats(m, 3),
               dy = random_floats(rows, 4);
  Staged<std::int32_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), 1);  // a first row that is none of them
  Floats dx(b.size());
  compare_sums(report, "accumulate_outer " + shape, n, m, [&](const GradientView& g) {
    accumulate_outer(Exec(), g, const_view(a, rows, n), const_view(b, rows, m));
  });
  compare_sums(report, "accumulate_bias " + shape, 1, m,
               [&](const GradientView& g) { accumulate_bias(Exec(), g, const_view(b, rows, m)); });
  compare_sums(report, "dot_rows_backward " + shape, 1, m, [&](const GradientView& g) {
    dot_rows_backward(Exec(), view(dx, rows, m), g, const_view(dy), const_view(b, rows, m),
                      const_view(w));
  });
  compare_sums(report, "add_rows " + shape, rows + 1, m, [&](const GradientView& g) {
    add_rows(Exec(), g, const_view(b, rows, m), const_view(order));
  });
}

// A chain for each place in a row, so that it does not matter which of them are here.
void compare_norm(Report& report, int rows, int width, int per_row) {
  const int stride = round_up(width, 64), vectors = rows * per_row;
  const std::int64_t n = std::int64_t{vectors} * stride;
  const Floats x = random_floats(n, 5), dy = random_floats(n, 6), inv = random_floats(vectors, 7),
               gain = random_floats(width, 8);
  Floats dx(x.size());
  const NormShape shape{width, stride, 1e-5f, per_row};
  Sums sums = some_sums(width), wanted = sums;
  rmsnorm_backward(Exec(), view(dx), view_of(sums, 1, width), const_view(dy), const_view(x),
                   const_view(inv), const_view(gain), shape, Accumulate::kNo);
  Exec().fence();
  for (int place = 0; place < per_row; ++place)
    for (int c = 0; c < width; ++c) {
      float chain = 0.0f;
      for (int v = place; v < vectors; v += per_row) {
        const std::size_t at = static_cast<std::size_t>(v) * stride + c;
        chain += dy[at] * x[at] * inv[v];
      }
      wanted[c] += to_fixed(chain);
    }
  report.expect_equal("fixed rmsnorm dgain " + std::to_string(rows) + " x " +
                          std::to_string(per_row) + " x " + std::to_string(width),
                      units(sums), units(wanted));
}

// Those who read fixed-point sums get the nearest floats.
void compare_readers(Report& report, std::int64_t n) {
  const std::string what = " of " + std::to_string(n) + " fixed sums";
  Sums sums = some_sums(n);
  const GradientView fixed = view_of(sums, 1, n);
  Floats wanted(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i)
    wanted[i] = static_cast<float>(static_cast<double>(sums[i].units) * 0x1p-46);
  const std::vector<std::int64_t> offsets{0, n / 2, n};
  std::vector<double> squares(2), wanted_squares(2);
  sum_squares(Exec(), squares, fixed, offsets);
  sum_squares(Exec(), wanted_squares, view(wanted), offsets);
  for (std::size_t i = 0; i < squares.size(); ++i)
    report.expect_equal("sum_squares" + what, squares[i], wanted_squares[i]);

  Floats p = random_floats(n, 1), m = random_floats(n, 2), v = random_floats(n, 3, 0.0, 1.0),
         wanted_p = p, wanted_m = m, wanted_v = v;
  AdamWStep step;
  step.lr = 1e-2f;
  adamw(Exec(), view(p), view(m), view(v), fixed, step);
  adamw(Exec(), view(wanted_p), view(wanted_m), view(wanted_v), view(wanted), step);
  Exec().fence();
  report.expect_equal("adamw" + what, p, wanted_p);

  Sums more = some_sums(n), added = sums;
  add_fixed_sums(Exec(), view(more), const_view(sums));
  Exec().fence();
  for (std::size_t i = 0; i < added.size(); ++i) added[i] = added[i] + sums[i];
  report.expect_equal("add_fixed_sums" + what, units(more), units(added));
  clear(Exec(), fixed);
  Exec().fence();
  report.expect_equal("clear" + what, units(sums), std::vector<std::int64_t>(sums.size(), 0));
}

// What is no number, or too large, stays so.
void compare_limits(Report& report) {
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const Floats terms{nan, inf, -inf, 32768.0f, -32768.0f, 40000.0f, 1e30f, 32767.0f, 1e-30f, -0.0f};
  const std::int64_t n = static_cast<std::int64_t>(terms.size());
  Sums sums(terms.size());
  std::vector<std::int64_t> wanted(terms.size(), kNoFixed.units);
  wanted[7] = std::int64_t{32767} << 46;
  wanted[8] = wanted[9] = 0;
  const Floats one{1.0f}, zero{0.0f};
  for (int time = 0; time < 3; ++time) {
    // Then with nothing, and with a number: they do not come back.
    const Floats& factor = time == 0 ? one : zero;
    Floats row = terms;
    if (time > 0)
      for (float& value : row) value = 1.0f;
    accumulate_outer(Exec(), view_of(sums, 1, n), const_view(factor, 1, 1), const_view(row, 1, n));
    Exec().fence();
    report.expect_equal("fixed limits", units(sums), wanted);
  }
  accumulate_outer(Exec(), view_of(sums, 1, n), const_view(one, 1, 1), const_view(terms, 1, n));
  Exec().fence();
  wanted[7] = kNoFixed.units;  // the sum is too large
  report.expect_equal("fixed limits", units(sums), wanted);
}

void compare(Report& report) {
  for (const int rows : {1, 2, 17, 130})
    for (const int n : {1, 5, 64, 70})
      for (const int m : {1, 15, 16, 17, 64, 65, 130}) compare_kernels(report, rows, n, m);
  for (const int per_row : {1, 2, 3})
    for (const int width : {1, 16, 17, 64, 100}) compare_norm(report, 7, width, per_row);
  for (const std::int64_t n : {1, 16, 100, 1024, 3000, 40000}) compare_readers(report, n);
  compare_limits(report);
}

void time(const Stopwatch& watch) {
  const int rows = 512, n = 1536, m = 576;
  const Floats a = random_floats(std::int64_t{rows} * n, 1),
               b = random_floats(std::int64_t{rows} * m, 2);
  Sums sums(std::size_t(n) * m);
  watch.measure(
      "accumulate_outer, fixed, 512 x 1536 x 576",
      [&] {
        accumulate_outer(Exec(), view_of(sums, n, m), const_view(a, rows, n),
                         const_view(b, rows, m));
      },
      16.0 * n * m, 2.0 * rows * n * m);
}

}  // namespace

Op gradient_op() {
  return {"gradient", compare, nullptr, time};
}

}  // namespace taper::test
