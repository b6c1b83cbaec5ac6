// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "driver/TrainingModel.hpp"

namespace taper {

// Writes the optimizer's masters as a Hugging Face directory that transformers loads: config.json,
// model.safetensors in the forward type, and the tokenizer files of the source. Written aside and
// renamed; an existing directory is replaced only then. Collective over the world; rank 0 writes,
// tensor by tensor.
void save_model(const Ranks& ranks, const ModelFiles& files, const TrainingModel& model,
                const std::filesystem::path& directory);

// Throws Error where `directory` holds something that is no model and would be replaced.
void require_model_target(const std::string& option, const std::filesystem::path& directory);

}  // namespace taper
