// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "results/SchemaCheck.hpp"

namespace taper {

// check_schema() in a process of its own: on some damaged files HDF5 ends its process with a
// signal, which is a fault of the file then, like others. Not where MPI is in use: such a process
// must not fork.
SchemaReport check_schema_apart(const std::filesystem::path& file);

}  // namespace taper
