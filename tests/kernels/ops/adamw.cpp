// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.hpp"

#include <cmath>
#include <vector>

#include "kernels/canonical/adamw.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/adamw.hpp"

namespace taper::test {
namespace {

AdamWStep make_step(const reference::AdamWOptions& o, int t, double grad_scale) {
  return {static_cast<float>(o.lr),
          static_cast<float>(o.beta1),
          static_cast<float>(o.beta2),
          static_cast<float>(o.eps),
          static_cast<float>(o.weight_decay),
          static_cast<float>(1.0 - o.beta1),
          static_cast<float>(1.0 - o.beta2),
          static_cast<float>(1.0 - std::pow(o.beta1, t)),
          static_cast<float>(std::sqrt(1.0 - std::pow(o.beta2, t))),
          static_cast<float>(grad_scale)};
}

// Ten steps with new gradients each.
void compare_steps(Report& report, std::int64_t n, const reference::AdamWOptions& options,
                   double grad_scale) {
  Floats p = random_floats(n, 1), m(n), v(n), wanted_p = p, wanted_m(n), wanted_v(n);
  std::vector<reference::AdamWState> right;
  for (const float value : p) right.push_back({value, 0.0, 0.0});
  for (int t = 1; t <= 10; ++t) {
    Floats gradient = random_floats(n, 10 + t, -0.3, 0.3);
    const AdamWStep step = make_step(options, t, grad_scale);
    adamw(Exec(), view(p), view(m), view(v), view(gradient), step);
    for (std::int64_t i = 0; i < n; ++i) {
      canonical::adamw(wanted_p[i], wanted_m[i], wanted_v[i], gradient[i], step);
      right[i] = reference::adamw(right[i], grad_scale * gradient[i], t, options);
    }
  }
  const std::string what = "adamw " + std::to_string(n);
  report.expect_equal(what + " parameters", p, wanted_p);
  report.expect_equal(what + " first moments", m, wanted_m);
  report.expect_equal(what + " second moments", v, wanted_v);
  reference::Vector parameters, first, second;
  for (const reference::AdamWState& s : right) {
    parameters.push_back(s.parameter);
    first.push_back(s.first);
    second.push_back(s.second);
  }
  report.expect_close(what + " parameters", p, parameters, 1e-6);
  report.expect_close(what + " first moments", m, first, 1e-6);
  report.expect_close(what + " second moments", v, second, 1e-6);
}

void compare(Report& report) {
  for (const std::int64_t n : {1, 15, 16, 17, 100, 16384, 16385, 40000}) {
    compare_steps(report, n, {1e-2, 0.9, 0.999, 1e-8, 0.0}, 1.0);
    compare_steps(report, n, {1e-3, 0.9, 0.95, 1e-5, 0.1}, 0.37);
  }
  for (const std::int64_t n : {0, 1, 16, 63, 64, 65, 1000, 65536, 65537, 300000}) {
    Floats x = random_floats(n, 3, -2, 2);
    const std::vector<std::int64_t> offsets{0, n / 3, n / 3, n};
    std::vector<double> sums(3);
    sum_squares(Exec(), sums, view(x), offsets);
    for (std::size_t i = 0; i < sums.size(); ++i)
      report.expect_equal(
          "sum_squares " + std::to_string(n), sums[i],
          canonical::sum_squares(x.data() + offsets[i], offsets[i + 1] - offsets[i]));
    report.expect_close("sum_squares " + std::to_string(n),
                        reference::Vector{sums[0] + sums[1] + sums[2]},
                        reference::Vector{reference::sum_squares(to_doubles(x))}, 1e-6);
  }
}

void time(const Stopwatch& watch) {
  const std::int64_t n = 1 << 22;
  Floats p(n, 0.5f), m(n, 0.1f), v(n, 0.1f), gradient(n, 0.01f);
  const AdamWStep step = make_step({}, 3, 1.0);
  watch.measure(
      "adamw 4 M", [&] { adamw(Exec(), view(p), view(m), view(v), view(gradient), step); },
      28.0 * n, 0);
  std::vector<std::int64_t> offsets;
  for (std::int64_t at = 0; at <= n; at += n / 64) offsets.push_back(at);
  std::vector<double> sums(64);
  watch.measure(
      "sum_squares 4 M", [&] { sum_squares(Exec(), sums, view(p), offsets); }, 4.0 * n, 0);
}

}  // namespace

Op adamw_op() {
  return {"adamw", compare, nullptr, time};
}

}  // namespace taper::test
