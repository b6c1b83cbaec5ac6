// SPDX-License-Identifier: Apache-2.0
#include "io/detail/Hdf5Layout.hpp"

#include <algorithm>

#include "base/Error.hpp"

namespace taper::detail {

std::vector<hsize_t> hdf5_dims(const Dims& dims) {
  return {dims.begin(), dims.end()};
}

Hdf5Id make_space(const std::string& file, const Dims& dims) {
  if (dims.empty()) return {TAPER_HDF5_CALL(file, H5Screate(H5S_SCALAR)), H5Sclose};
  const auto sizes = hdf5_dims(dims);
  return {TAPER_HDF5_CALL(file,
                          H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr)),
          H5Sclose};
}

void select_block(const std::string& file, hid_t space, const Dims& offset, const Dims& dims) {
  if (product(dims) == 0) {
    TAPER_HDF5_CALL(file, H5Sselect_none(space));
    return;
  }
  if (dims.empty()) return;
  const auto start = hdf5_dims(offset);
  const auto count = hdf5_dims(dims);
  TAPER_HDF5_CALL(file, H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr,
                                            count.data(), nullptr));
}

Dims choose_chunk(const Dims& dims, std::size_t element_size) {
  constexpr std::int64_t kChunkBytes = 256 * 1024;
  const std::int64_t most =
      std::max<std::int64_t>(1, kChunkBytes / static_cast<std::int64_t>(element_size));
  Dims chunk = dims;
  std::int64_t inner = 1;
  for (std::size_t i = chunk.size(); i-- > 0;) {
    chunk[i] = std::clamp<std::int64_t>(most / inner, 1, std::max<std::int64_t>(1, dims[i]));
    inner *= chunk[i];
  }
  return chunk;
}

Hdf5Id make_dataset_properties(const std::string& file, const Dims& dims, std::size_t element_size,
                               const DatasetOptions& options) {
  Hdf5Id list(TAPER_HDF5_CALL(file, H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  TAPER_HDF5_CALL(file, H5Pset_obj_track_times(list.get(), false));
  const bool filtered = options.compression > 0 || options.checksum == Checksum::kFletcher32;
  // Filters need chunks, and chunks need at least one element.
  if (!filtered || dims.empty() || product(dims) == 0) return list;
  const auto chunk =
      hdf5_dims(options.chunk.empty() ? choose_chunk(dims, element_size) : options.chunk);
  TAPER_HDF5_CALL(file, H5Pset_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data()));
  if (options.compression > 0) {
    TAPER_HDF5_CALL(file, H5Pset_shuffle(list.get()));
    TAPER_HDF5_CALL(file, H5Pset_deflate(list.get(), static_cast<unsigned>(options.compression)));
  }
  if (options.checksum == Checksum::kFletcher32)
    TAPER_HDF5_CALL(file, H5Pset_fletcher32(list.get()));
  return list;
}

Hdf5Id make_string_type(const std::string& file, std::size_t length) {
  Hdf5Id type(TAPER_HDF5_CALL(file, H5Tcopy(H5T_C_S1)), H5Tclose);
  TAPER_HDF5_CALL(file, H5Tset_size(type.get(), std::max<std::size_t>(1, length)));
  TAPER_HDF5_CALL(file, H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  TAPER_HDF5_CALL(file, H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

}  // namespace taper::detail
