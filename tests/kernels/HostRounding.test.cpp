// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostRounding.hpp"

#include "kernels/CheckOp.hpp"
#include "kernels/detail/product_args.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Whether operands of a product are rounded before, with memory of so many floats.
template <class Round>
bool is_rounded(const Round& round, detail::ProductArgs args, std::int64_t floats,
                Arithmetic arithmetic = Arithmetic::kBf16Dot) {
  Floats memory(floats);
  HostExec exec;
  exec.arithmetic = arithmetic;
  round(with_rounding(exec, memory.data(), floats), args);
  return args.rounded != nullptr;
}

}  // namespace

TEST_CASE("the memory that passes plan is enough to round operands before", "[host_ops]") {
  for (const int rows : {1, 2, 65, 128})
    for (const int n : {1, 15, 16, 1024, 1039})
      for (const int m : {1, 63, 64, 65, 4096}) {
        if (n * detail::quotient_up(m, kPanelColumns) < 1024) continue;
        INFO(rows << " rows, " << n << " x " << m);
        const Floats a(std::int64_t{rows} * n), b(std::int64_t{rows} * m);
        Floats gradient(std::int64_t{n} * m);
        const detail::ProductArgs args =
            detail::accumulate_outer_args(GradientView(gradient.data(), GradientType::kF32, n, m),
                                          const_view(a, rows, n), const_view(b, rows, m));
        CHECK(is_rounded(detail::round_outer, args, rounded_outer_floats(rows, n, m)));
      }
  const Floats x(512 * 66), stored(130 * 66);
  const PackedWeights w = pack(stored, 130, 66, WeightType::kBf16, PackOrder::kRowsAreColumns);
  const auto args_of = [&](int rows, Floats& y) {
    return detail::multiply_args(view(y, rows, w.matrix.columns), const_view(x, rows, 66),
                                 w.matrix);
  };
  Floats y(512 * w.matrix.columns);
  const std::int64_t floats = rounded_rows_floats(512, 66);
  CHECK(is_rounded(detail::round_rows, args_of(512, y), floats));
  CHECK(is_rounded(detail::round_rows, args_of(512, y), floats, Arithmetic::kBf16));
  CHECK_FALSE(is_rounded(detail::round_rows, args_of(512, y), floats, Arithmetic::kF32));
  CHECK_FALSE(is_rounded(detail::round_rows, args_of(512, y), floats - 1));
  CHECK_FALSE(is_rounded(detail::round_rows, args_of(16, y), floats));  // tasks round them faster
}
