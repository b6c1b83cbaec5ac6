// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/Hdf5File.hpp"

namespace taper::detail {

std::vector<hsize_t> hdf5_dims(const Dims& dims);

// A data space of these dimensions; scalar if dims is empty.
Hdf5Id make_space(const std::string& file, const Dims& dims);

// Selects the block at offset in space, or nothing if the block is empty.
void select_block(const std::string& file, hid_t space, const Dims& offset, const Dims& dims);

// Chunk of at most about 256 KiB that keeps the trailing dimensions whole as far as possible.
Dims choose_chunk(const Dims& dims, std::size_t element_size);

// Creation properties of a dataset: filters and chunks as asked for, no time stamps (equal content
// = equal file).
Hdf5Id make_dataset_properties(const std::string& file, const Dims& dims, std::size_t element_size,
                               const DatasetOptions& options);

// Fixed-length UTF-8.
Hdf5Id make_string_type(const std::string& file, std::size_t length);

}  // namespace taper::detail
