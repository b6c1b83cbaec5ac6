// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/Op.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>

#include "kernels/Exec.hpp"

namespace taper::test {
namespace {

std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

// The first difference and their number, or nothing.
template <class A, class B, class Same>
std::string differences(const std::string& what, std::span<A> got, std::span<B> wanted,
                        const Same& same) {
  std::ostringstream text;
  text.precision(9);
  if (got.size() != wanted.size()) {
    text << what << ": " << got.size() << " values instead of " << wanted.size();
    return text.str();
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same(got[i], wanted[i])) continue;
    if (count++ == 0)
      text << what << ": [" << i << "] is " << got[i] << " instead of " << wanted[i];
  }
  if (count > 0) text << " (" << count << " of " << got.size() << " differ)";
  return text.str();
}

template <class T>
double largest(std::span<const T> values) {
  double most = 0.0;
  for (const T value : values) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

}  // namespace

void Report::check(const std::function<std::string()>& differences) {
  ++checks_;
  Exec().fence();
  std::string text = differences();
  if (!text.empty()) failures_.push_back(std::move(text));
}

void Report::expect_equal(const std::string& what, std::span<const float> got,
                          std::span<const float> wanted) {
  check([&] {
    return differences(what, got, wanted, [](float a, float b) { return bits(a) == bits(b); });
  });
}

void Report::expect_equal(const std::string& what, std::span<const std::int64_t> got,
                          std::span<const std::int64_t> wanted) {
  check([&] { return differences(what, got, wanted, std::equal_to<>()); });
}

void Report::expect_equal(const std::string& what, double got, double wanted) {
  check([&] {
    return differences(what, std::span<const double>(&got, 1), std::span<const double>(&wanted, 1),
                       [](double a, double b) { return bits(a) == bits(b); });
  });
}

void Report::expect_close(const std::string& what, std::span<const float> got,
                          std::span<const double> wanted, double tolerance) {
  check([&] {
    const double bound = tolerance * largest(wanted);
    return differences(what, got, wanted,
                       [&](float a, double b) { return std::abs(a - b) <= bound; });
  });
}

void Report::expect_close(const std::string& what, std::span<const double> got,
                          std::span<const double> wanted, double tolerance) {
  check([&] {
    const double bound = tolerance * largest(wanted);
    return differences(what, got, wanted,
                       [&](double a, double b) { return std::abs(a - b) <= bound; });
  });
}

double Stopwatch::measure(const std::string& what, const std::function<void()>& action,
                          double bytes, double flops) const {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto finish = [&] {
    action();
    Exec().fence();
  };
  finish();  // warm caches, threads and pages
  // The best of several calls: other work on the machine only adds time.
  double best = INFINITY;
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    finish();
    best = std::min(best, seconds_since(begin));
  } while (seconds_since(start) < seconds_);
  std::printf("%-44s %12.0f ns", what.c_str(), best * 1e9);
  if (bytes > 0) std::printf("  %8.2f GB/s", bytes / best * 1e-9);
  if (flops > 0) std::printf("  %8.2f GFLOP/s", flops / best * 1e-9);
  std::printf("\n");
  return best;
}

std::vector<Op> all_ops() {
  std::vector<Op> ops{activation_op(),   adamw_op(),  attention_op(), bf16_attention_op(),
                      bf16_product_op(), copy_op(),   dot_rows_op(),  embedding_op(),
                      gradient_op(),     logits_op(), norm_op(),      product_op(),
                      row_parallel_op(), rope_op()};
  if (kOnHost) ops.push_back(bf16_dot_product_op());
  return ops;
}

}  // namespace taper::test
