// SPDX-License-Identifier: Apache-2.0
//
// Strings and attributes of Hdf5File.
#include <algorithm>
#include <cstring>

#include "base/Error.hpp"
#include "io/Hdf5File.hpp"
#include "io/detail/Hdf5Layout.hpp"

namespace taper {

namespace {

// A fixed-length element ends at its padding.
std::string trim_padding(const char* text, std::size_t size) {
  return {text, strnlen(text, size)};
}

// Reads count strings of either kind; read(type, buffer) is the H5Dread or H5Aread.
template <class Read>
std::vector<std::string> read_text(const std::string& file, const std::string& name, hid_t stored,
                                   std::size_t count, Read&& read) {
  TAPER_VALIDATE(H5Tget_class(stored) == H5T_STRING, file << ": " << name << " is not a string");
  std::vector<std::string> texts;
  if (count == 0) return texts;
  if (TAPER_HDF5_CALL(file, H5Tis_variable_str(stored)) > 0) {
    std::vector<char*> pointers(count, nullptr);
    read(stored, pointers.data());
    for (char* pointer : pointers) {
      texts.emplace_back(pointer == nullptr ? "" : pointer);
      H5free_memory(pointer);
    }
    return texts;
  }
  const std::size_t size = H5Tget_size(stored);
  std::vector<char> buffer(size * count);
  read(stored, buffer.data());
  for (std::size_t i = 0; i < count; ++i)
    texts.push_back(trim_padding(buffer.data() + i * size, size));
  return texts;
}

}  // namespace

void Hdf5File::write_string(const std::string& name, std::string_view text,
                            const DatasetOptions& options) {
  const Hdf5Id type = detail::make_string_type(path_, text.size());
  const std::string padded = text.empty() ? std::string(1, '\0') : std::string(text);
  write_raw(name, type.get(), padded.data(), 1, {}, options);
}

void Hdf5File::write_strings(const std::string& name, std::span<const std::string> texts,
                             const DatasetOptions& options) {
  std::size_t longest = 1;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  std::vector<char> buffer(longest * texts.size(), '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::copy(texts[i].begin(), texts[i].end(),
              buffer.begin() + static_cast<std::ptrdiff_t>(i * longest));
  }
  const Hdf5Id type = detail::make_string_type(path_, longest);
  write_raw(name, type.get(), buffer.data(), texts.size(),
            {static_cast<std::int64_t>(texts.size())}, options);
}

std::vector<std::string> Hdf5File::read_strings(const std::string& name) const {
  const auto count = static_cast<std::size_t>(product(dims(name)));
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Dget_type(dataset.get())), H5Tclose);
  return read_text(path_, name, stored.get(), count, [&](hid_t type, void* buffer) {
    TAPER_HDF5_CALL(path_, H5Dread(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer));
  });
}

std::string Hdf5File::read_string(const std::string& name) const {
  check_dims(name, {});
  return read_strings(name).front();
}

// --- attributes

Hdf5Id Hdf5File::replace_attribute(const std::string& object, const std::string& name, hid_t type) {
  const Hdf5Id owner = open_object(object);
  if (TAPER_HDF5_CALL(path_, H5Aexists(owner.get(), name.c_str())) > 0) {
    TAPER_HDF5_CALL(path_, H5Adelete(owner.get(), name.c_str()));
  }
  const Hdf5Id space = detail::make_space(path_, {});
  return {TAPER_HDF5_CALL(path_, H5Acreate2(owner.get(), name.c_str(), type, space.get(),
                                            H5P_DEFAULT, H5P_DEFAULT)),
          H5Aclose};
}

// Of variable length, unlike datasets: h5py then hands out str, not bytes.
void Hdf5File::set_attribute(const std::string& object, const std::string& name,
                             std::string_view value) {
  const Hdf5Id type(TAPER_HDF5_CALL(path_, H5Tcopy(H5T_C_S1)), H5Tclose);
  TAPER_HDF5_CALL(path_, H5Tset_size(type.get(), H5T_VARIABLE));
  TAPER_HDF5_CALL(path_, H5Tset_cset(type.get(), H5T_CSET_UTF8));
  const Hdf5Id attribute = replace_attribute(object, name, type.get());
  const std::string terminated(value);
  const char* pointer = terminated.c_str();
  TAPER_HDF5_CALL(path_, H5Awrite(attribute.get(), type.get(), &pointer));
}

void Hdf5File::set_number_attribute(const std::string& object, const std::string& name,
                                    double value) {
  const Hdf5Id attribute = replace_attribute(object, name, H5T_NATIVE_DOUBLE);
  TAPER_HDF5_CALL(path_, H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, &value));
}

void Hdf5File::set_number_attribute(const std::string& object, const std::string& name,
                                    std::int64_t value) {
  const Hdf5Id attribute = replace_attribute(object, name, H5T_NATIVE_INT64);
  TAPER_HDF5_CALL(path_, H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value));
}

bool Hdf5File::has_attribute(const std::string& object, const std::string& name) const {
  const Hdf5Id owner = open_object(object);
  return TAPER_HDF5_CALL(path_, H5Aexists(owner.get(), name.c_str())) > 0;
}

std::vector<std::string> Hdf5File::attribute_names(const std::string& object) const {
  const Hdf5Id owner = open_object(object);
  std::vector<std::string> found;
  hsize_t index = 0;
  TAPER_HDF5_CALL(path_, H5Aiterate2(
                             owner.get(), H5_INDEX_NAME, H5_ITER_INC, &index,
                             [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
                               static_cast<std::vector<std::string>*>(out)->emplace_back(name);
                               return 0;
                             },
                             &found));
  std::sort(found.begin(), found.end());
  return found;
}

Hdf5Id Hdf5File::open_attribute(const std::string& object, const std::string& name) const {
  TAPER_VALIDATE(has_attribute(object, name), path_
                                                  << ": " << object << " has no attribute " << name
                                                  << " (wrong kind of file, or an older version?)");
  const Hdf5Id owner = open_object(object);
  return {TAPER_HDF5_CALL(path_, H5Aopen(owner.get(), name.c_str(), H5P_DEFAULT)), H5Aclose};
}

std::string Hdf5File::string_attribute(const std::string& object, const std::string& name) const {
  const Hdf5Id attribute = open_attribute(object, name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Aget_type(attribute.get())), H5Tclose);
  const Hdf5Id space(TAPER_HDF5_CALL(path_, H5Aget_space(attribute.get())), H5Sclose);
  TAPER_VALIDATE(H5Sget_simple_extent_npoints(space.get()) == 1,
                 path_ << ": attribute " << name << " of " << object << " is not one string");
  return read_text(path_, name, stored.get(), 1,
                   [&](hid_t type, void* buffer) {
                     TAPER_HDF5_CALL(path_, H5Aread(attribute.get(), type, buffer));
                   })
      .front();
}

void Hdf5File::read_number_attribute(const std::string& object, const std::string& name, hid_t type,
                                     void* value) const {
  const Hdf5Id attribute = open_attribute(object, name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Aget_type(attribute.get())), H5Tclose);
  const Hdf5Id space(TAPER_HDF5_CALL(path_, H5Aget_space(attribute.get())), H5Sclose);
  TAPER_VALIDATE(H5Tget_class(stored.get()) == H5Tget_class(type) &&
                     H5Sget_simple_extent_npoints(space.get()) == 1,
                 path_ << ": attribute " << name << " of " << object
                       << " is not one number of the expected type");
  TAPER_HDF5_CALL(path_, H5Aread(attribute.get(), type, value));
}

std::int64_t Hdf5File::int_attribute(const std::string& object, const std::string& name) const {
  std::int64_t value = 0;
  read_number_attribute(object, name, H5T_NATIVE_INT64, &value);
  return value;
}

double Hdf5File::double_attribute(const std::string& object, const std::string& name) const {
  double value = 0;
  read_number_attribute(object, name, H5T_NATIVE_DOUBLE, &value);
  return value;
}

}  // namespace taper
