// SPDX-License-Identifier: Apache-2.0
//
// One table of operations, three modes: compare (equal to the canonical loops bit for bit, close to
// the reference), gradient (the reference's gradients by finite differences, the kernel's against
// the reference's) and time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace taper::test {

// What a mode found. Kept free of the test framework: the benchmark program shares the table.
class Report {
 public:
  // Bit for bit.
  void expect_equal(const std::string& what, std::span<const float> got,
                    std::span<const float> wanted);
  void expect_equal(const std::string& what, std::span<const std::int64_t> got,
                    std::span<const std::int64_t> wanted);
  void expect_equal(const std::string& what, double got, double wanted);
  // |got - wanted| <= tolerance * (largest |wanted|).
  void expect_close(const std::string& what, std::span<const float> got,
                    std::span<const double> wanted, double tolerance);
  void expect_close(const std::string& what, std::span<const double> got,
                    std::span<const double> wanted, double tolerance);

  int checks() const { return checks_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  // `differences`: what differs, or nothing; asked once all that was launched has ended.
  void check(const std::function<std::string()>& differences);

  int checks_ = 0;
  std::vector<std::string> failures_;
};

// Measures one action; see bench_kernels.
class Stopwatch {
 public:
  // The benchmark asks for `seconds` per measurement; a smoke run for 0 (one call each).
  explicit Stopwatch(double seconds) : seconds_(seconds) {}
  // Prints time per call and, if given, GB/s and GFLOP/s. Returns seconds per call.
  double measure(const std::string& what, const std::function<void()>& action, double bytes,
                 double flops) const;

 private:
  double seconds_;
};

struct Op {
  std::string name;
  std::function<void(Report&)> compare;
  std::function<void(Report&)> gradient;  // empty: no gradient
  std::function<void(const Stopwatch&)> time;
};

Op activation_op();
Op adamw_op();
Op attention_op();
Op bf16_attention_op();
Op bf16_product_op();
Op bf16_dot_product_op();  // on the host
Op copy_op();
Op dot_rows_op();
Op embedding_op();
Op gradient_op();
Op logits_op();
Op norm_op();
Op product_op();
Op rope_op();
Op row_parallel_op();

std::vector<Op> all_ops();

}  // namespace taper::test
