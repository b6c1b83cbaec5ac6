// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "results/RolloutFile.hpp"

namespace taper {

// The first `count` samples of a rollout file, or of the newest one of a run directory, as text for
// people: prompt, response, rewards, advantage, finish reason. `model` is the directory of the
// tokenizer; empty: the model of the run that the file belongs to. Throws Error if file or model
// cannot be read.
std::string rollout_text(const std::filesystem::path& path, int count,
                         const std::filesystem::path& model);

// All samples of a rollout file, and with them all its checksums. Throws Error naming the file
// if it is damaged or no such file.
RolloutSet read_rollouts_checked(const std::filesystem::path& file);

}  // namespace taper
