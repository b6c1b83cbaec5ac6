// SPDX-License-Identifier: Apache-2.0
#include "optim/OptimizerStep.hpp"

#include "base/Log.hpp"

namespace taper {

OptimizerReport make_step(const Exec& exec, ShardedAdamW& optimizer, const Gradients& gradients,
                          const ScheduleOptions& schedule, const std::function<void()>& publish,
                          double scale) {
  const double rate = learning_rate(schedule, optimizer.steps());
  const OptimizerReport report = optimizer.step(exec, gradients, rate, scale);
  publish();
  if (report.skipped)
    TAPER_INFO("skipped an optimizer step: the gradient of " << report.bad_tensor
                                                             << " is not finite");
  return report;
}

}  // namespace taper
