// SPDX-License-Identifier: Apache-2.0
//
// manifest.json of a checkpoint: its files, with their sizes and checksums.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/Group.hpp"

namespace taper {

// Files have a checksum for each part of so many bytes: the ranks share the parts, so that none
// reads a large checkpoint alone while the others wait. Manifests of version 1 have one checksum of
// each whole file.
inline constexpr std::int64_t kManifestPartBytes = std::int64_t{64} << 20;

// Lists all files of the directory, which all ranks can read; rank 0 of the group writes. Returns
// their paths, the same on all ranks. Throws Error, on every rank if a file cannot be read.
// Collective over `group`.
std::vector<std::filesystem::path> write_manifest(const std::filesystem::path& checkpoint,
                                                  std::int64_t iteration, const Group& group,
                                                  std::int64_t part_bytes = kManifestPartBytes);

// Compares all files of a checkpoint directory with its manifest, as rank 0 reads it: the names of
// those that do not agree, with the reason, the same on all ranks. Empty if it is whole. Collective
// over `group`.
std::vector<std::string> manifest_problems(const std::filesystem::path& checkpoint,
                                           const Group& group);

}  // namespace taper
