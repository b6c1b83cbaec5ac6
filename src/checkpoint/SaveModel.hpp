// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "instance/TrainingModel.hpp"

namespace taper {

// Writes the optimizer's masters in the form of Hugging Face, as transformers loads it:
// config.json, model.safetensors in the forward type, and the tokenizer files of the source. Into a
// directory that is there. Collective over the ranks of the model, the first of which writes,
// tensor by tensor.
void write_model(const ModelFiles& files, const TrainingModel& model,
                 const std::filesystem::path& directory);

// The same, written aside and renamed: an existing directory is replaced only when the new one is
// whole. Collective over the ranks of the model.
void save_model(const ModelFiles& files, const TrainingModel& model,
                const std::filesystem::path& directory);

// What stands beside the weights of a model: config.json, which says that they are of `type`, and
// the tokenizer files of another directory. On one rank.
void write_companions(const std::filesystem::path& source, const ModelConfig& config,
                      TensorType type, const std::filesystem::path& directory);

// Throws Error if `directory` holds something that would be replaced and is not `kind`, which has a
// file `file`. `newcomer` is what would replace it.
void require_target(const std::string& option, const std::filesystem::path& directory,
                    const std::string& file, const std::string& kind, const std::string& newcomer);
// Likewise for a model.
void require_model_target(const std::string& option, const std::filesystem::path& directory);

}  // namespace taper
