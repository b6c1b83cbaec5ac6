// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostRounding.hpp"

#include <cstdint>

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper::detail {
namespace {

// Whether tasks round enough to pay for one more launch: each rounds its rows again for every panel
// of columns. From 16 rows on for the layers of a small model, as bench_model measures it.
bool pays(const HostExec& exec, const ProductArgs& args) {
  constexpr int kLeast = 1024;  // rows x panels
  return rounds_operands(exec.arithmetic) &&
         args.rows * quotient_up(args.columns, kPanel) >= kLeast;
}

bool has_room(const Rounding& rounding, std::int64_t pairs) {
  return pairs * std::int64_t{sizeof(Bf16Pair)} <= rounding.bytes;
}

}  // namespace

void round_rows(const HostExec& exec, ProductArgs& args) {
  const bool has_pairs = args.a_row % 2 == 0 && args.a_leaf % 2 == 0 && args.leaf_k % 2 == 0 &&
                         args.last_leaf_k % 2 == 0;
  if (!has_pairs || !pays(exec, args) || !has_room(exec.rounding, args.rows * args.a_row / 2))
    return;
  auto* const to = static_cast<bf16*>(exec.rounding.memory);
  const auto round = host_ops().pairs.round;
  const float* const from = args.a;
  const std::int64_t inputs = args.a_row;
  for_each("taper::round_rows", exec, args.rows,
           [=](const int row) { round(to + row * inputs, from + row * inputs, inputs); });
  args.rounded = to;
}

// A as pairs of inputs, W packed as weights are.
void round_outer(const HostExec& exec, ProductArgs& args) {
  const int inputs = args.leaf_k, pairs = quotient_up(inputs, 2);
  const int panels = quotient_up(args.columns, kPanel);
  // An odd number of vectors: pairs so far apart take all sets of a cache in turn.
  const std::int64_t stride = std::int64_t{quotient_up(args.rows, 16) | 1} * 16;
  const std::int64_t panel = std::int64_t{pairs} * kPanel;
  if (!pays(exec, args) || !has_room(exec.rounding, pairs * stride + panels * panel)) return;
  auto* const a = static_cast<Bf16Pair*>(exec.rounding.memory);
  Bf16Pair* const w = a + pairs * stride;
  const auto round_pairs = host_ops().pairs.round_pairs;
  constexpr int kBlock = 16;  // pairs of A of a task, about as much as a panel of W
  const int blocks = quotient_up(pairs, kBlock);
  const ProductArgs given = args;
  for_each_uneven("taper::round_outer", exec, blocks + panels, [=](const int i) {
    if (i < blocks) {
      const int k = 2 * kBlock * i, n = inputs - k < 2 * kBlock ? inputs - k : 2 * kBlock;
      round_pairs(a + i * kBlock * stride, stride, given.a + k * given.a_k, given.a_k, n,
                  given.rows);
    } else {
      const int p = i - blocks, left = given.columns - p * kPanel;
      round_pairs(w + p * panel, kPanel, static_cast<const float*>(given.w) + p * given.w_panel,
                  given.w_k, inputs, left < kPanel ? left : kPanel);
    }
  });
  args.rounded = reinterpret_cast<const bf16*>(a);
  args.pair_stride = stride;
  args.w = w;
  args.w_is_bf16 = true;
  args.w_k = kPanel;
  args.w_panel = 2 * panel;
  args.w_inputs = args.leaf_k = args.last_leaf_k = 2 * pairs;
}

}  // namespace taper::detail
