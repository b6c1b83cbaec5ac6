// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "instance/ModelFiles.hpp"

namespace taper {

// Writes early exits (instance/ExitFiles.hpp) behind so many layers of a model: heads that read the
// stream there as the model's own head reads that behind the last layer, for these ids. Layers and
// ids ascend. An existing directory is replaced only when the new one is whole. On one rank.
void write_exits(const ModelFiles& files, const std::vector<int>& layers,
                 const std::vector<std::int32_t>& ids, const std::filesystem::path& directory);

}  // namespace taper
