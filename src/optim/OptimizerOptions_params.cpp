// SPDX-License-Identifier: Apache-2.0
#include "optim/OptimizerOptions_params.hpp"

#include <cstdint>
#include <limits>

namespace taper {

void describe_schedule(param::Section& s, ScheduleOptions& lr, ScheduleEnd end,
                       const std::string& section) {
  s.number("Learning Rate", lr.peak, "Peak learning rate").at_least(0);
  s.choice("Schedule", lr.kind,
           "Learning rate after warm-up: constant: the peak; cosine: falls along a cosine to Final "
           "Share of the peak; wsd: the peak for Stable Share of the steps, then falls likewise",
           {{"constant", ScheduleOptions::Kind::kConstant},
            {"cosine", ScheduleOptions::Kind::kCosine},
            {"wsd", ScheduleOptions::Kind::kWsd}});
  s.integer("Warmup Steps", lr.warmup_steps, "Optimizer steps of linear warm-up").at_least(0);
  s.integer(
       "Total Steps", lr.total_steps,
       end == ScheduleEnd::kGiven
           ? "Optimizer steps, warm-up included, after which the rate no longer falls; needed by "
             "cosine and wsd"
           : "Optimizer steps, warm-up included, after which the rate no longer falls; 0: "
             "those of the run")
      .at_least(0);
  s.number("Final Share", lr.final_share,
           "Learning rate at the end of the cosine, as a share of the peak")
      .between(0, 1);
  s.number("Stable Share", lr.stable_share,
           "For wsd: share of the steps between warm-up and Total Steps that use the peak rate")
      .between(0, 1);
  s.check([&lr, end, section] {
    ScheduleOptions checked = lr;
    if (end == ScheduleEnd::kOfRun && lr.total_steps == 0)
      checked.total_steps = std::numeric_limits<std::int64_t>::max();
    return checked.problems(section);
  });
}

void describe_optimizer(param::Section& schema, AdamWOptions& o, ScheduleOptions& lr,
                        ScheduleEnd end) {
  auto s = schema.section("Optimizer", "AdamW and its learning rate");
  describe_schedule(s, lr, end, "Optimizer");
  s.number("Beta1", o.beta1, "Decay of the first moment").at_least(0).below(1);
  s.number("Beta2", o.beta2, "Decay of the second moment").at_least(0).below(1);
  s.number("Epsilon", o.eps, "Added to the square root of the second moment").above(0);
  s.number("Weight Decay", o.weight_decay, "Decoupled weight decay").at_least(0);
  s.number("Clip Norm", o.clip_norm, "Largest gradient norm, larger ones are scaled down; 0: off")
      .at_least(0);
  s.choice(
      "On Non Finite", o.on_non_finite,
      "What to do if a gradient is not finite: stop: end the run; skip: leave the step out",
      {{"stop", AdamWOptions::OnNonFinite::kStop}, {"skip", AdamWOptions::OnNonFinite::kSkip}});
  s.choice("Offload", o.offload,
           "On GPUs, what is kept in page-locked memory of the host, at the price of its bus in "
           "each step: none; moments; all: moments and f32 masters",
           {{"none", AdamWOptions::Offload::kNone},
            {"moments", AdamWOptions::Offload::kMoments},
            {"all", AdamWOptions::Offload::kAll}});
}

}  // namespace taper
