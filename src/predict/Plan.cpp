// SPDX-License-Identifier: Apache-2.0
#include "predict/Plan.hpp"

namespace taper {

std::string to_string(const Plan& plan) {
  std::string text = to_string(plan.layout);
  if (plan.repack) text += " repacked";
  switch (plan.start) {
    case PlanStart::kNow:
      return text + " now";
    case PlanStart::kAfter:
      return text + " after " + std::to_string(plan.argument) + " consultations";
    case PlanStart::kBelow:
      return text + " at " + std::to_string(plan.argument) + " sequences";
  }
  return text;
}

Plan stay_in(const Layout& layout) {
  return {layout, PlanStart::kNow, 0, false};
}

}  // namespace taper
