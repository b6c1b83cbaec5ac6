// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/BitCheck.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/Bf16.hpp"
#include "base/FloatMode.hpp"
#include "kernels/detail/PairPanel.hpp"

namespace taper::detail {

bool gives_equal_bits(ProductTask task, ProductTask expected) {
  constexpr int kRows = 21, kInputs = 107;
  // Any numbers of very different size: every other row so small that products and sums underflow,
  // with denormals among them.
  std::uint32_t state = 1;
  const auto next = [&](std::uint32_t least_exponent, std::uint32_t exponents) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t exponent = least_exponent + (state >> 20) % exponents;
    return std::bit_cast<float>((state & 0x80000000u) | exponent << 23 | (state & 0x7fffff));
  };
  std::vector<float> a(kRows * kInputs);
  for (int i = 0; i < kRows * kInputs; ++i)
    a[i] = i / kInputs % 2 == 0 ? next(105, 30) : i % 5 == 0 ? next(0, 1) : next(1, 30);
  // A row of denormals that would round up to a normal number.
  std::fill_n(a.begin() + kInputs, kInputs, std::bit_cast<float>(0x7fffffu));
  std::vector<bf16> w(kInputs * kPanel);
  for (int i = 0; i < kInputs * kPanel; ++i)
    w[i] = to_bf16(i % 17 == 0 ? next(0, 1) : next(105, 24));
  const auto multiplied = [&](ProductTask by) {
    std::vector<float> y(kRows * kPanel);
    ProductArgs args;
    args.a = a.data();
    args.a_row = kInputs;
    args.w = w.data();
    args.w_is_bf16 = true;
    args.w_panel = kInputs * kPanel;
    args.w_inputs = kInputs;
    args.leaf_k = args.last_leaf_k = kInputs;
    args.y = y.data();
    args.y_row = kPanel;
    args.rows = kRows;
    args.columns = kPanel;
    by(args, 0, kRows, 0);
    return y;
  };
  const FloatMode before = flush_on_this_thread();
  const std::vector<float> one = multiplied(task), other = multiplied(expected);
  write_float_mode(before);
  return std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
}

}  // namespace taper::detail
