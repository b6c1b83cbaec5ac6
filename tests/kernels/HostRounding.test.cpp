// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/HostRounding.hpp"

#include <algorithm>

#include "kernels/CheckOp.hpp"
#include "kernels/detail/product_args.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Whether operands of a product are rounded before, with memory of so many floats, behind which
// nothing is written.
template <class Round>
bool is_rounded(const Round& round, detail::ProductArgs args, std::int64_t floats,
                Arithmetic arithmetic = Arithmetic::kBf16Dot) {
  constexpr float kGuard = 7.0f;
  Floats memory(floats + 64, kGuard);
  HostExec exec;
  exec.arithmetic = arithmetic;
  round(with_rounding(exec, memory.data(), floats), args);
  CHECK(std::all_of(memory.begin() + floats, memory.end(), [](float x) { return x == kGuard; }));
  return args.rounded != nullptr;
}

}  // namespace

TEST_CASE("the memory that passes plan is enough to round operands before", "[host_ops]") {
  for (const int rows : {1, 2, 65, 128})
    for (const auto& [n, m] : {std::pair{1, 65536},
                               {2, 65535},
                               {15, 4480},
                               {16, 4096},
                               {17, 4095},
                               {1024, 1},
                               {1024, 64},
                               {1039, 65}}) {
      INFO(rows << " rows, " << n << " x " << m);
      const Floats a(std::int64_t{rows} * n), b(std::int64_t{rows} * m);
      Floats gradient(std::int64_t{n} * m);
      const detail::ProductArgs args =
          detail::accumulate_outer_args(GradientView(gradient.data(), GradientType::kF32, n, m),
                                        const_view(a, rows, n), const_view(b, rows, m));
      const std::int64_t floats = rounded_outer_floats(rows, n, m);
      CHECK(is_rounded(detail::round_outer, args, floats));
      CHECK_FALSE(is_rounded(detail::round_outer, args, floats / 2));
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
