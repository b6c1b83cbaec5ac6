// SPDX-License-Identifier: Apache-2.0
#include "planner/Plan.hpp"

#include "base/Text.hpp"

namespace taper {

std::string to_string(const Plan& plan) {
  std::string text = to_string(plan.layout);
  if (plan.repack == Repack::kYes) text += " repacked";
  switch (plan.start) {
    case PlanStart::kNow:
      return text + " now";
    case PlanStart::kBelow:
      return text + " at " + count_text(plan.argument, "sequence");
  }
  return text;
}

Plan stay_in(const Layout& layout) {
  return {layout, PlanStart::kNow, 0, Repack::kNo};
}

}  // namespace taper
