// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "param/Schema.hpp"
#include "reward/RewardOptions.hpp"

namespace taper {

// The section Rewards: one section for each reward, under its name. Rewards stay where they are
// when more are added.
void describe_rewards(param::Section& schema, std::deque<RewardOptions>& rewards);

}  // namespace taper
