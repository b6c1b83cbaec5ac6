// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm.hpp"

#include "kernels/canonical/norm.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/norm.hpp"

namespace taper::test {
namespace {

constexpr float kEps = 1e-5f;
constexpr double kForwardError = 1e-6, kBackwardError = 1e-5;  // float against double

// The first `width` columns of (vectors, stride).
reference::Matrix valid_part(const Floats& values, int vectors, const NormShape& s) {
  reference::Matrix part(vectors, s.width);
  for (int v = 0; v < vectors; ++v)
    for (int c = 0; c < s.width; ++c) part(v, c) = values[v * s.stride + c];
  return part;
}

Floats valid_floats(const Floats& values, int vectors, const NormShape& s) {
  Floats part;
  for (int v = 0; v < vectors; ++v)
    part.insert(part.end(), values.begin() + v * s.stride, values.begin() + v * s.stride + s.width);
  return part;
}

struct Data {
  int vectors;
  NormShape shape;
  Floats x, gain, dy, inverse;
};

Data make_data(int vectors, int width, int stride) {
  Data d{vectors,
         {width, stride, kEps},
         random_floats(vectors * stride, 1, -3, 3),
         random_floats(width, 2, 0.5, 2),
         random_floats(vectors * stride, 3),
         Floats(vectors)};
  return d;
}

void compare_forward(Report& report, Data& d, const std::string& what) {
  Floats y(d.x.size(), -7.0f), expected = y, expected_inverse(d.vectors);
  rmsnorm(Exec(), view(y), view(d.inverse), const_view(d.x), const_view(d.gain), d.shape);
  for (int v = 0; v < d.vectors; ++v) {
    const int at = v * d.shape.stride;
    expected_inverse[v] =
        canonical::rmsnorm(&expected[at], &d.x[at], d.gain.data(), d.shape.width, kEps);
  }
  report.expect_equal("rmsnorm " + what, y, expected);  // also: padding is left alone
  report.expect_equal("rmsnorm inverse " + what, d.inverse, expected_inverse);
  report.expect_close(
      "rmsnorm " + what, valid_floats(y, d.vectors, d.shape),
      reference::rmsnorm(valid_part(d.x, d.vectors, d.shape), to_doubles(d.gain), kEps).data,
      kForwardError);
  Floats in_place = d.x;
  rmsnorm(Exec(), view(in_place), {}, const_view(in_place), const_view(d.gain), d.shape);
  Exec().fence();
  report.expect_equal("rmsnorm in place " + what, valid_floats(in_place, d.vectors, d.shape),
                      valid_floats(y, d.vectors, d.shape));
}

void compare_backward(Report& report, const Data& d, const std::string& what) {
  const NormShape& s = d.shape;
  const Floats start_gain = random_floats(s.width, 4),
               start_dx = random_floats(d.vectors * s.stride, 5);
  Floats dgain = start_gain, expected_dgain = start_gain, dx = start_dx, expected_dx = start_dx;
  rmsnorm_backward(Exec(), view(dx), view(dgain), const_view(d.dy), const_view(d.x),
                   const_view(d.inverse), const_view(d.gain), s, Accumulate::kYes);
  Floats replaced = d.dy, expected_replaced = d.dy, unused(s.width);
  rmsnorm_backward(Exec(), view(replaced), view(unused), const_view(replaced), const_view(d.x),
                   const_view(d.inverse), const_view(d.gain), s, Accumulate::kNo);
  for (int v = 0; v < d.vectors; ++v) {
    const int at = v * s.stride;
    Floats row(s.width);
    canonical::rmsnorm_backward(row.data(), &d.dy[at], &d.x[at], d.gain.data(), s.width,
                                d.inverse[v]);
    for (int i = 0; i < s.width; ++i) {
      expected_replaced[at + i] = row[i];
      expected_dx[at + i] += row[i];
    }
  }
  canonical::accumulate_gain(expected_dgain.data(), d.dy.data(), d.x.data(), d.inverse.data(),
                             d.vectors, s.width, s.stride);
  report.expect_equal("rmsnorm dx, added " + what, dx, expected_dx);
  report.expect_equal("rmsnorm dx over dy " + what, replaced, expected_replaced);
  report.expect_equal("rmsnorm dgain " + what, dgain, expected_dgain);

  const reference::NormGradient right = reference::rmsnorm_backward(
      valid_part(d.dy, d.vectors, s), valid_part(d.x, d.vectors, s), to_doubles(d.gain), kEps);
  if (s.width > 1)  // the gradient of a single element is zero: only rounding remains
    report.expect_close("rmsnorm dx " + what, valid_floats(replaced, d.vectors, s), right.dx.data,
                        kBackwardError);
  report.expect_close("rmsnorm dgain " + what, unused, right.dgain, kBackwardError);
}

void compare(Report& report) {
  for (const int width : {1, 7, 15, 16, 17, 24, 64, 80, 100, 128, 576})
    for (const int vectors : {1, 2, 5, 33}) {
      Data d = make_data(vectors, width, round_up(width, 64));
      const std::string what = std::to_string(vectors) + " x " + std::to_string(width);
      compare_forward(report, d, what);
      compare_backward(report, d, what);
    }
}

void gradient(Report& report) {
  const int rows = 3, width = 10;
  const Data d = make_data(rows, width, width);
  const reference::Matrix x = valid_part(d.x, rows, d.shape), dy = valid_part(d.dy, rows, d.shape);
  const reference::Vector gain = to_doubles(d.gain);
  const reference::NormGradient right = reference::rmsnorm_backward(dy, x, gain, kEps);
  report.expect_close(
      "reference dx", right.dx.data,
      finite_differences(
          x.data,
          [&](const auto& at) {
            return dot(dy.data, reference::rmsnorm({rows, width, at}, gain, kEps).data);
          }),
      1e-8);
  report.expect_close(
      "reference dgain", right.dgain,
      finite_differences(
          gain, [&](const auto& at) { return dot(dy.data, reference::rmsnorm(x, at, kEps).data); }),
      1e-8);
}

void time(const Stopwatch& watch) {
  for (const int rows : {1, 64, 512}) {
    Data d = make_data(rows, 576, 576);
    Floats y(d.x.size()), dgain(576);
    const double bytes = 4.0 * d.x.size();
    watch.measure(
        "rmsnorm 576, rows " + std::to_string(rows),
        [&] {
          rmsnorm(Exec(), view(y), view(d.inverse), const_view(d.x), const_view(d.gain), d.shape);
        },
        2 * bytes, 0);
    watch.measure(
        "rmsnorm_backward 576, rows " + std::to_string(rows),
        [&] {
          rmsnorm_backward(Exec(), view(y), view(dgain), const_view(d.dy), const_view(d.x),
                           const_view(d.inverse), const_view(d.gain), d.shape, Accumulate::kNo);
        },
        3 * bytes, 0);
  }
}

}  // namespace

Op norm_op() {
  return {"norm", compare, gradient, time};
}

}  // namespace taper::test
