// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/embedding.hpp"

#include "kernels/canonical/embedding.hpp"
#include "kernels/copy.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/embedding.hpp"

namespace taper::test {
namespace {

Staged<std::int32_t> some_ids(int rows, int vocab) {
  Staged<std::int32_t> ids;
  for (int r = 0; r < rows; ++r) ids.push_back((r * r * 31 + r) % vocab);
  return ids;
}

// Shards of the vocabulary fill and collect just their own rows.
void compare_case(Report& report, int rows, int vocab, int h, WeightType type,
                  Arithmetic arithmetic = Arithmetic::kF32) {
  Exec exec;
  exec.arithmetic = arithmetic;
  const std::string what =
      std::to_string(rows) + " of " + std::to_string(vocab) + " x " + std::to_string(h);
  const Floats stored = random_floats(std::int64_t{vocab} * h, 1),
               dy = random_floats(std::int64_t{rows} * h, 2);
  const Floats seen = rounded(stored, type);
  const auto ids = some_ids(rows, vocab);
  const PackedWeights table = pack(stored, vocab, h, type, PackOrder::kRowsAreColumns, exec);
  Floats y(dy.size(), NAN), gradient = random_floats(std::int64_t{vocab} * h, 3), wanted = gradient;
  const Floats start = gradient;
  const int cut = vocab / 2 / 64 * 64;
  for (const auto& [begin, end] : {std::pair{0, cut}, std::pair{cut, vocab}}) {
    if (begin == end) continue;
    embed(exec, view(y, rows, h), const_view(ids),
          table.matrix.column_slice(begin, end == vocab ? table.matrix.columns : end), begin);
    const MatrixView<float, Exec> part(gradient.data() + std::int64_t{begin} * h, end - begin, h);
    add_rows(Exec(), part, const_view(dy, rows, h), const_view(ids), begin);
  }
  const reference::Matrix right =
      reference::embed(to_matrix(seen, vocab, h), {ids.begin(), ids.end()});
  report.expect_equal("embed " + what, y, Floats(right.data.begin(), right.data.end()));
  canonical::embed_backward(wanted.data(), dy.data(), ids.data(), rows, h);
  report.expect_equal("add_rows " + what, gradient, wanted);
  reference::Vector sums =
      reference::embed_backward(to_matrix(dy, rows, h), {ids.begin(), ids.end()}, vocab).data;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += start[i];
  report.expect_close("add_rows " + what, gradient, sums, 1e-6);
}

void compare(Report& report) {
  for (const int rows : {1, 3, 70, 300})
    for (const int vocab : {1, 64, 200})
      for (const int h : {1, 63, 100}) {
        compare_case(report, rows, vocab, h, WeightType::kF32);
        compare_case(report, rows, vocab, h, WeightType::kBf16);
        compare_case(report, rows, vocab, h, WeightType::kBf16, Arithmetic::kBf16);
      }
}

void gradient(Report& report) {
  const std::vector<std::int32_t> ids = {2, 0, 2};
  const reference::Matrix table = to_matrix(random_floats(8, 1), 4, 2),
                          dy = to_matrix(random_floats(6, 2), 3, 2);
  report.expect_close(
      "reference dtable", reference::embed_backward(dy, ids, 4).data,
      finite_differences(table.data,
                         [&](const auto& at) {
                           return dot(dy.data, reference::embed({4, 2, at}, ids).data);
                         }),
      1e-8);
}

void time(const Stopwatch& watch) {
  const int vocab = 8192, h = 576, rows = 512;
  const PackedWeights table = pack(random_floats(std::int64_t{vocab} * h, 1), vocab, h,
                                   WeightType::kBf16, PackOrder::kRowsAreColumns);
  const auto ids = some_ids(rows, vocab);
  Floats y(rows * h), gradient(static_cast<std::size_t>(vocab) * h);
  watch.measure(
      "embed 512 x 576", [&] { embed(Exec(), view(y, rows, h), const_view(ids), table.matrix, 0); },
      4.0 * y.size(), 0);
  watch.measure(
      "add_rows 512 x 576",
      [&] { add_rows(Exec(), view(gradient, vocab, h), const_view(y, rows, h), const_view(ids)); },
      12.0 * y.size(), 0);
}

}  // namespace

Op embedding_op() {
  return {"embedding", compare, gradient, time};
}

}  // namespace taper::test
