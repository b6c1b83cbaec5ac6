// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace taper {

// The first `count` samples of a rollout file, or of the newest one of a run directory, as text for
// people: prompt, response, rewards, advantage, finish reason. `model` is the directory of the
// tokenizer; empty: the model of the run that the file belongs to. Throws Error where file or model
// cannot be read.
std::string rollout_text(const std::filesystem::path& path, int count,
                         const std::filesystem::path& model);

// Reads all rollout files of a run directory, and with them all their checksums; one line that says
// what there is. Throws Error naming a damaged file.
std::string check_rollouts(const std::filesystem::path& run_directory);

}  // namespace taper
