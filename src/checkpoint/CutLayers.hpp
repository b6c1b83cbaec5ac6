// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "instance/ModelFiles.hpp"

namespace taper {

// Writes a model of some layers of another one, in this order, with the embedding, the final norm
// and the head of it: a draft model that knows something already and learns the rest by
// fine-tuning. An existing model in `directory` is replaced when the new one is whole. Throws Error
// if there is no such layer. On one rank.
void cut_layers(const ModelFiles& files, const std::vector<int>& layers,
                const std::filesystem::path& directory);

}  // namespace taper
