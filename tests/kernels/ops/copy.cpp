// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.hpp"

#include <algorithm>

#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"

namespace taper::test {
namespace {

// Vectors between others that must stay as they are.
void compare_vectors(Report& report, int n) {
  const std::string what = std::to_string(n);
  const Floats start = random_floats(n + 2, 1), x = random_floats(n, 2);
  const auto inner = [n](Floats& v) { return VectorView<float, Exec>(v.data() + 1, n); };
  Floats y = start, wanted = start;
  fill(Exec(), inner(y), 0.25f);
  std::fill_n(wanted.begin() + 1, n, 0.25f);
  report.expect_equal("fill " + what, y, wanted);
  std::copy_n(x.begin(), n, wanted.begin() + 1);
  copy(Exec(), inner(y), const_view(x));
  report.expect_equal("copy " + what, y, wanted);
  y = start;
  copy_from_host(Exec(), inner(y), x);
  report.expect_equal("copy_from_host " + what, y, wanted);
  Floats back(n);
  copy_to_host(Exec(), back, inner(y));
  report.expect_equal("copy_to_host " + what, back, x);
}

// Some rows of a matrix in no order, and back; and the same rows as blocks.
void compare_rows(Report& report, int n, int h) {
  const std::string what = std::to_string(n) + " x " + std::to_string(h);
  const int total = 2 * n + 1;
  Staged<std::int32_t> rows;
  for (int i = 0; i < n; ++i) rows.push_back((i * 7 + 3) % total);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::reverse(rows.begin(), rows.end());
  const int count = static_cast<int>(rows.size());
  const Floats x = random_floats(std::int64_t{total} * h, 1),
               start = random_floats(std::int64_t{total} * h, 2);
  Floats some(static_cast<std::size_t>(count) * h), wanted_some(some.size());
  Floats y = start, sums = start, blocks_y = start, wanted = start, wanted_sums = start;
  Staged<BlockCopy> blocks;
  for (int i = 0; i < count; ++i)
    for (int c = 0; c < h; ++c) {
      const std::int64_t at = std::int64_t{rows[i]} * h + c;
      wanted_some[i * h + c] = wanted[at] = x[at];
      wanted_sums[at] += x[at];
    }
  for (const std::int32_t row : rows)
    blocks.push_back({&blocks_y[std::int64_t{row} * h], &x[std::int64_t{row} * h]});
  gather_rows(Exec(), view(some, count, h), const_view(x, total, h), const_view(rows));
  report.expect_equal("gather_rows " + what, some, wanted_some);
  scatter_rows(Exec(), view(y, total, h), const_view(some, count, h), const_view(rows));
  report.expect_equal("scatter_rows " + what, y, wanted);
  copy_blocks(Exec(), const_view(blocks), h);
  report.expect_equal("copy_blocks " + what, blocks_y, wanted);
  add_rows(Exec(), view(sums, total, h), const_view(some, count, h), const_view(rows));
  report.expect_equal("add_rows " + what, sums, wanted_sums);
}

void compare(Report& report) {
  for (const int n : {0, 1, 100, 16384, 50000}) compare_vectors(report, n);
  for (const int n : {1, 3, 70})
    for (const int h : {1, 63, 200}) compare_rows(report, n, h);
}

void time(const Stopwatch& watch) {
  const int rows = 512, h = 576;
  const Floats x = random_floats(std::int64_t{rows} * h, 1);
  Staged<std::int32_t> every;
  for (int i = 0; i < rows; ++i) every.push_back(rows - 1 - i);
  Floats y(x.size());
  watch.measure(
      "fill 512 x 576", [&] { fill(Exec(), view(y), 0.0f); }, 4.0 * y.size(), 0);
  watch.measure(
      "copy 512 x 576", [&] { copy(Exec(), view(y), const_view(x)); }, 8.0 * y.size(), 0);
  watch.measure(
      "gather_rows 512 x 576",
      [&] { gather_rows(Exec(), view(y, rows, h), const_view(x, rows, h), const_view(every)); },
      8.0 * y.size(), 0);
}

}  // namespace

Op copy_op() {
  return {"copy", compare, {}, time};
}

}  // namespace taper::test
