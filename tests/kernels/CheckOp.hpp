// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"

namespace taper::test {

inline void require_clean(const Report& report, int at_least) {
  const std::size_t shown = std::min<std::size_t>(report.failures().size(), 10);
  for (std::size_t i = 0; i < shown; ++i) {
    UNSCOPED_INFO(report.failures()[i]);
    CHECK(false);
  }
  CHECK(report.failures().size() == 0);
  CHECK(report.checks() >= at_least);  // a mode that checks nothing must not pass
}

inline void check_compare(const Op& op) {
  flush_denormals();
  Report report;
  op.compare(report);
  require_clean(report, 10);
}

inline void check_gradient(const Op& op) {
  flush_denormals();
  Report report;
  op.gradient(report);
  require_clean(report, 1);
}

}  // namespace taper::test
