// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace taper {

// The tree of an HDF5 file, for people: names, shapes, units, descriptions, attributes and the
// first values. Reads all of it, so that damage shows: throws Error naming the file.
std::string hdf5_tree(const std::filesystem::path& file);

}  // namespace taper
