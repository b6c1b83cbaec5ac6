// SPDX-License-Identifier: Apache-2.0
//
// How a file stores its arrays: types and filters of Hdf5File, and reading for the checksums alone.
#include <algorithm>

#include "base/Error.hpp"
#include "io/Hdf5File.hpp"
#include "io/detail/Hdf5Layout.hpp"

namespace taper {
namespace {

constexpr std::int64_t kMostDeflation = 1032;  // of any data, by the design of deflate

StoredType type_of(hid_t stored) {
  const std::size_t size = H5Tget_size(stored);
  switch (H5Tget_class(stored)) {
    case H5T_STRING:
      return StoredType::kText;
    case H5T_FLOAT:
      return size == 4 ? StoredType::kF32 : size == 8 ? StoredType::kF64 : StoredType::kOther;
    case H5T_INTEGER:
      if (H5Tget_sign(stored) == H5T_SGN_NONE)
        return size == 8 ? StoredType::kU64 : StoredType::kOther;
      if (size == 1) return StoredType::kI8;
      if (size == 4) return StoredType::kI32;
      return size == 8 ? StoredType::kI64 : StoredType::kOther;
    default:
      return StoredType::kOther;
  }
}

// The sizes of a part of at most `bytes`: whole in the last dimensions, 1 in the first.
Dims part_of(const Dims& dims, std::int64_t element_size, std::int64_t bytes) {
  std::int64_t most = bytes / element_size;
  Dims part = dims;
  for (std::size_t i = dims.size(); i-- > 0;) {
    part[i] = std::clamp<std::int64_t>(most, 1, dims[i]);
    most /= part[i];
  }
  return part;
}

// Moves offset on to the next part; false after the last one.
bool to_next_part(Dims& offset, const Dims& part, const Dims& dims) {
  for (std::size_t i = dims.size(); i-- > 0;) {
    offset[i] += part[i];
    if (offset[i] < dims[i]) return true;
    offset[i] = 0;
  }
  return false;
}

}  // namespace

const char* to_string(StoredType type) {
  switch (type) {
    case StoredType::kText:
      return "text";
    case StoredType::kI8:
      return "i8";
    case StoredType::kI32:
      return "i32";
    case StoredType::kI64:
      return "i64";
    case StoredType::kU64:
      return "u64";
    case StoredType::kF32:
      return "f32";
    case StoredType::kF64:
      return "f64";
    case StoredType::kOther:
      break;
  }
  return "another type";
}

StoredType Hdf5File::type(const std::string& name) const {
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Dget_type(dataset.get())), H5Tclose);
  return type_of(stored.get());
}

StoredType Hdf5File::attribute_type(const std::string& object, const std::string& name) const {
  const Hdf5Id attribute = open_attribute(object, name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Aget_type(attribute.get())), H5Tclose);
  return type_of(stored.get());
}

Storage Hdf5File::storage(const std::string& name) const {
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id list(TAPER_HDF5_CALL(path_, H5Dget_create_plist(dataset.get())), H5Pclose);
  const int filters = TAPER_HDF5_CALL(path_, H5Pget_nfilters(list.get()));
  Storage found;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, settings = 0;
    std::size_t count = 0;
    const H5Z_filter_t filter =
        TAPER_HDF5_CALL(path_, H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &count,
                                              nullptr, 0, nullptr, &settings));
    if (filter == H5Z_FILTER_FLETCHER32) found.is_checksummed = true;
    if (filter == H5Z_FILTER_DEFLATE) found.is_deflated = true;
  }
  return found;
}

void Hdf5File::require_readable(const std::string& name, std::int64_t part_bytes) const {
  const Dims dims = this->dims(name);
  if (product(dims) == 0) return;
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Dget_type(dataset.get())), H5Tclose);
  TAPER_VALIDATE(type_of(stored.get()) != StoredType::kOther,
                 path_ << ": " << name << " has a type that no file of Taper's has");
  const auto size = static_cast<std::int64_t>(H5Tget_size(stored.get()));
  const auto held =
      TAPER_HDF5_CALL(path_, static_cast<std::int64_t>(H5Dget_storage_size(dataset.get())));
  TAPER_VALIDATE(product(dims) * size / kMostDeflation <= held,
                 path_ << ": " << name << " should have " << product(dims) * size << " bytes ("
                       << held << " are stored); damaged file?");
  if (TAPER_HDF5_CALL(path_, H5Tis_variable_str(stored.get())) > 0) {
    read_strings(name);  // which frees what HDF5 allocates
    return;
  }
  TAPER_VALIDATE(size <= part_bytes, path_ << ": " << name << " has elements of " << size
                                           << " bytes (at most " << part_bytes << " expected)");
  const Dims part = part_of(dims, size, part_bytes);
  std::vector<char> values(static_cast<std::size_t>(product(part) * size));
  const Hdf5Id space(TAPER_HDF5_CALL(path_, H5Dget_space(dataset.get())), H5Sclose);
  Dims offset(dims.size(), 0);
  do {
    Dims here = part;
    for (std::size_t i = 0; i < dims.size(); ++i) here[i] = std::min(part[i], dims[i] - offset[i]);
    detail::select_block(path_, space.get(), offset, here);
    const Hdf5Id memory = detail::make_space(path_, here);
    TAPER_HDF5_CALL(path_, H5Dread(dataset.get(), stored.get(), memory.get(), space.get(),
                                   H5P_DEFAULT, values.data()));
  } while (to_next_part(offset, part, dims));
}

}  // namespace taper
