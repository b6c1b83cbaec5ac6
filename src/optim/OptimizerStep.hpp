// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "optim/Schedule.hpp"
#include "optim/ShardedAdamW.hpp"

namespace taper {

// Makes the step of the gradients that are accumulated, times `scale`, at the rate that the
// schedule has for it, and publishes the weights: `publish` must refresh the packed ones from the
// optimizer's masters. Says in the log which gradient was not finite, if the step was skipped for
// that. Collective over the tensor- and the data-parallel group.
OptimizerReport make_step(const Exec& exec, ShardedAdamW& optimizer, const Gradients& gradients,
                          const ScheduleOptions& schedule, const std::function<void()>& publish,
                          double scale = 1.0);

}  // namespace taper
