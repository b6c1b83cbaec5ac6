// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation.hpp"

#include "kernels/canonical/activation.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/activation.hpp"
#include "kernels/reference/product.hpp"

namespace taper::test {
namespace {

constexpr double kError = 1e-6;  // float against double

// The gate of output column c; its up stands 64 columns later.
std::size_t gate_at(int row, int n, int c) {
  return static_cast<std::size_t>(row) * 2 * n + c / 64 * 128 + c % 64;
}

void compare_swiglu(Report& report, int rows, int n) {
  const std::string what = "swiglu " + std::to_string(rows) + " x " + std::to_string(n);
  Floats gate_up = random_floats(std::int64_t{rows} * 2 * n, 1, -6, 6);
  gate_up[0] = 95.0f;  // beyond the range of the exponential
  gate_up[1] = -95.0f;
  const Floats dy = random_floats(std::int64_t{rows} * n, 2);
  Floats y(dy.size(), NAN), d_gate_up = gate_up, wanted_y(dy.size()), wanted_d(gate_up.size());
  reference::Vector right_y(dy.size()), right_d(gate_up.size());
  swiglu(Exec(), view(y, rows, n), const_view(gate_up, rows, 2 * n));
  swiglu_backward(Exec(), view(d_gate_up, rows, 2 * n), const_view(dy, rows, n),
                  const_view(d_gate_up, rows, 2 * n));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < n; ++c) {
      const std::size_t g = gate_at(r, n, c), u = g + 64, i = static_cast<std::size_t>(r) * n + c;
      wanted_y[i] = canonical::swiglu(gate_up[g], gate_up[u]);
      canonical::swiglu_backward(wanted_d[g], wanted_d[u], dy[i], gate_up[g], gate_up[u]);
      right_y[i] = reference::swiglu(gate_up[g], gate_up[u]);
      const reference::SwigluGradient d = reference::swiglu_backward(dy[i], gate_up[g], gate_up[u]);
      right_d[g] = d.dgate;
      right_d[u] = d.dup;
    }
  report.expect_equal(what, y, wanted_y);
  report.expect_equal(what + " backward", d_gate_up, wanted_d);
  report.expect_close(what, y, right_y, kError);
  report.expect_close(what + " backward", d_gate_up, right_d, kError);
}

void compare_sums(Report& report, int rows, int columns) {
  const std::string what = std::to_string(rows) + " x " + std::to_string(columns);
  const Floats x = random_floats(std::int64_t{rows} * columns, 3),
               start = random_floats(columns, 4);
  Floats sums = start, wanted = start;
  accumulate_bias(Exec(), view(sums), const_view(x, rows, columns));
  canonical::accumulate_columns(wanted.data(), x.data(), rows, columns);
  report.expect_equal("accumulate_bias " + what, sums, wanted);
  reference::Vector right = reference::column_sums(to_matrix(x, rows, columns));
  for (int c = 0; c < columns; ++c) right[c] += start[c];
  report.expect_close("accumulate_bias " + what, sums, right, 1e-5);
}

void compare_add(Report& report, std::int64_t n) {
  const Floats a = random_floats(n, 5), b = random_floats(n, 6);
  Floats sum = a, wanted;
  for (std::int64_t i = 0; i < n; ++i) wanted.push_back(a[i] + b[i]);
  add(Exec(), view(sum), const_view(sum), const_view(b));
  report.expect_equal("add " + std::to_string(n), sum, wanted);
}

void compare(Report& report) {
  for (const int rows : {1, 2, 7, 70})
    for (const int n : {64, 192, 1536}) compare_swiglu(report, rows, n);
  for (const int rows : {1, 2, 33, 300})
    for (const int columns : {1, 15, 16, 17, 100, 576}) compare_sums(report, rows, columns);
  for (const std::int64_t n : {1, 15, 16, 17, 1000, 8191, 8192, 8193, 20000})
    compare_add(report, n);
}

void gradient(Report& report) {
  for (const double gate : {-7.0, -1.3, 0.0, 0.4, 5.0}) {
    const reference::SwigluGradient g = reference::swiglu_backward(0.7, gate, -1.1);
    const reference::Vector by = finite_differences({gate, -1.1}, [](const reference::Vector& at) {
      return 0.7 * reference::swiglu(at[0], at[1]);
    });
    report.expect_close("reference swiglu", reference::Vector{g.dgate, g.dup}, by, 1e-8);
  }
}

void time(const Stopwatch& watch) {
  for (const int rows : {1, 256}) {
    Floats gate_up = random_floats(rows * 3072, 1), y(rows * 1536);
    watch.measure(
        "swiglu 1536, rows " + std::to_string(rows),
        [&] { swiglu(Exec(), view(y, rows, 1536), const_view(gate_up, rows, 3072)); },
        12.0 * y.size(), 0);
  }
  const std::int64_t n = 1 << 22;
  const Floats a = random_floats(1000, 1);
  Floats x(n, a[0]), y(n, a[1]);
  watch.measure(
      "add 4 M", [&] { add(Exec(), view(y), const_view(y), const_view(x)); }, 12.0 * n, 0);
}

}  // namespace

Op activation_op() {
  return {"activation", compare, gradient, time};
}

}  // namespace taper::test
