// SPDX-License-Identifier: Apache-2.0
//
// How a file stores its arrays: types and filters of Hdf5File, and reading for the checksums alone.
#include <algorithm>

#include "base/Error.hpp"
#include "io/Hdf5File.hpp"
#include "io/detail/Hdf5Layout.hpp"

namespace taper {
namespace {

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

void Hdf5File::require_readable(const std::string& name) const {
  constexpr std::int64_t kPartBytes = std::int64_t{64} << 20;
  const Dims dims = this->dims(name);
  if (product(dims) == 0) return;
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Dget_type(dataset.get())), H5Tclose);
  TAPER_VALIDATE(type_of(stored.get()) != StoredType::kOther,
                 path_ << ": " << name << " has a type that no file of Taper's has");
  if (TAPER_HDF5_CALL(path_, H5Tis_variable_str(stored.get())) > 0) {
    read_strings(name);  // which frees what HDF5 allocates
    return;
  }
  const auto size = static_cast<std::int64_t>(H5Tget_size(stored.get()));
  const std::int64_t rows = dims.empty() ? 1 : dims.front();
  const std::int64_t row_bytes = product(dims) / rows * size;
  const std::int64_t most = std::clamp<std::int64_t>(kPartBytes / row_bytes, 1, rows);
  std::vector<char> values(static_cast<std::size_t>(most * row_bytes));
  const Hdf5Id space(TAPER_HDF5_CALL(path_, H5Dget_space(dataset.get())), H5Sclose);
  for (std::int64_t first = 0; first < rows; first += most) {
    Dims part = dims, offset(dims.size(), 0);
    if (!dims.empty()) {
      part.front() = std::min(most, rows - first);
      offset.front() = first;
    }
    detail::select_block(path_, space.get(), offset, part);
    const Hdf5Id memory = detail::make_space(path_, part);
    TAPER_HDF5_CALL(path_, H5Dread(dataset.get(), stored.get(), memory.get(), space.get(),
                                   H5P_DEFAULT, values.data()));
  }
}

}  // namespace taper
