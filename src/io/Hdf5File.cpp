// SPDX-License-Identifier: Apache-2.0
#include "io/Hdf5File.hpp"

#ifdef TAPER_HAVE_HDF5_HL
#include <hdf5_hl.h>
#endif

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/MpiCall.hpp"
#include "io/detail/Hdf5Layout.hpp"

namespace taper {

namespace {

Hdf5Id access_properties(const std::string& file) {
  Hdf5Id list(TAPER_HDF5_CALL(file, H5Pcreate(H5P_FILE_ACCESS)), H5Pclose);
  TAPER_HDF5_CALL(file, H5Pset_libver_bounds(list.get(), H5F_LIBVER_V18, H5F_LIBVER_V110));
  TAPER_HDF5_CALL(file, H5Pset_fclose_degree(list.get(), H5F_CLOSE_STRONG));
#if H5_VERSION_GE(1, 10, 7)
  // Cluster file systems often have no locks, and a renamed file needs none.
  TAPER_HDF5_CALL(file, H5Pset_file_locking(list.get(), false, true));
#endif
  return list;
}

Hdf5Id parallel_access_properties(const std::string& file, MPI_Comm comm) {
  Hdf5Id list = access_properties(file);
  TAPER_HDF5_CALL(file, H5Pset_fapl_mpio(list.get(), comm, MPI_INFO_NULL));
  return list;
}

// For the root group and others: without times, so that equal content gives equal bytes.
Hdf5Id untimed_properties(const std::string& file, hid_t kind) {
  Hdf5Id list(TAPER_HDF5_CALL(file, H5Pcreate(kind)), H5Pclose);
  TAPER_HDF5_CALL(file, H5Pset_obj_track_times(list.get(), false));
  return list;
}

Hdf5Id create_file(const std::string& file, const Hdf5Id& access) {
  const Hdf5Id creation = untimed_properties(file, H5P_FILE_CREATE);
  return {
      TAPER_HDF5_CALL(file, H5Fcreate(file.c_str(), H5F_ACC_TRUNC, creation.get(), access.get())),
      H5Fclose};
}

Hdf5Id open_with(const std::string& file, const Hdf5Id& access) {
  TAPER_VALIDATE(std::filesystem::is_regular_file(file),
                 path_text(file) << " cannot be read (no such file); " << path_advice(file));
  TAPER_VALIDATE(Hdf5File::has_signature(file),
                 path_text(file) << " is not an HDF5 file (its signature is missing); is it the "
                                    "right file, and complete?");
  return {TAPER_HDF5_CALL(file, H5Fopen(file.c_str(), H5F_ACC_RDONLY, access.get())), H5Fclose};
}

// Nothing may be lost on the way into memory.
bool fits(hid_t stored, hid_t wanted) {
  const auto kind = H5Tget_class(stored);
  if (kind != H5Tget_class(wanted)) return false;
  const auto from = H5Tget_size(stored), to = H5Tget_size(wanted);
  if (kind == H5T_FLOAT) return from <= to;
  if (kind != H5T_INTEGER) return false;
  if (H5Tget_sign(stored) == H5Tget_sign(wanted)) return from <= to;
  return H5Tget_sign(stored) == H5T_SGN_NONE && from < to;
}

std::string dims_text(const Dims& dims) {
  return "(" + join(dims) + ")";
}

}  // namespace

std::int64_t product(const Dims& dims) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  std::int64_t count = 1;
  for (const auto dim : dims)
    TAPER_VALIDATE(!__builtin_mul_overflow(count, dim, &count),
                   "an array of " << dims_text(dims) << " has more elements than can be counted");
  return count;
}

std::vector<std::string> DatasetOptions::problems() const {
  std::vector<std::string> found;
  if (compression < 0 || compression > 9) found.push_back("compression must be 0 to 9");
  if (std::any_of(chunk.begin(), chunk.end(), [](auto size) { return size < 1; })) {
    found.push_back("chunk sizes must be positive");
  }
  return found;
}

hid_t detail::native_type(bool floating, bool is_signed, std::size_t size) {
  if (floating) return size == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  switch (size) {
    case 1:
      return is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2:
      return is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4:
      return is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default:
      return is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
  }
}

// --- opening and closing

Hdf5File::Hdf5File(std::string path, Hdf5Id file, MPI_Comm comm)
    : path_(std::move(path)),
      file_(std::move(file)),
      parallel_(comm != MPI_COMM_NULL),
      exceptions_(std::uncaught_exceptions()) {
  if (parallel_) rank_ = detail::comm_rank(comm);
}

bool Hdf5File::has_signature(const std::filesystem::path& path) {
  return std::filesystem::is_regular_file(path) &&
         TAPER_HDF5_CALL(path.string(), H5Fis_hdf5(path.c_str())) > 0;
}

Hdf5File Hdf5File::open_read(const std::filesystem::path& path) {
  return {path.string(), open_with(path.string(), access_properties(path.string())), MPI_COMM_NULL};
}

Hdf5File Hdf5File::create(const std::filesystem::path& path) {
  return {path.string(), create_file(path.string(), access_properties(path.string())),
          MPI_COMM_NULL};
}

Hdf5File Hdf5File::create_in_memory(const std::string& name) {
  constexpr std::size_t kGrowth = 1 << 20;
  const Hdf5Id access = access_properties(name);
  TAPER_HDF5_CALL(name, H5Pset_fapl_core(access.get(), kGrowth, false));
  // HDF5 1.10 clears a flag in the image of a newer superblock without renewing its checksum; the
  // oldest has none.
  TAPER_HDF5_CALL(name, H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V110));
  return {name, create_file(name, access), MPI_COMM_NULL};
}

Hdf5File Hdf5File::create_parallel(const std::filesystem::path& path, MPI_Comm comm) {
  const Hdf5Id access = parallel_access_properties(path.string(), comm);
  TAPER_HDF5_CALL(path.string(), H5Pset_coll_metadata_write(access.get(), true));
  return {path.string(), create_file(path.string(), access), comm};
}

Hdf5File::~Hdf5File() {
  if (parallel_ && std::uncaught_exceptions() > exceptions_) file_.release();
}

void Hdf5File::flush() {
  TAPER_HDF5_CALL(path_, H5Fflush(file_.get(), H5F_SCOPE_GLOBAL));
}

void Hdf5File::close() {
  if (!file_.is_open()) return;
  flush();
  TAPER_HDF5_CALL(path_, H5Fclose(file_.release()));
}

std::vector<std::byte> Hdf5File::image() {
  flush();
  const auto size = TAPER_HDF5_CALL(path_, H5Fget_file_image(file_.get(), nullptr, 0));
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  TAPER_HDF5_CALL(path_, H5Fget_file_image(file_.get(), bytes.data(), bytes.size()));
  return bytes;
}

// --- looking

bool Hdf5File::exists(const std::string& name) const {
  std::size_t end = 0;
  // HDF5 answers only for the last part of a path whose other parts exist.
  while (end < name.size()) {
    const auto begin = name.find_first_not_of('/', end);
    if (begin == std::string::npos) break;
    end = std::min(name.find('/', begin), name.size());
    const std::string head = name.substr(0, end);
    if (TAPER_HDF5_CALL(path_, H5Lexists(file_.get(), head.c_str(), H5P_DEFAULT)) == 0)
      return false;
    if (end < name.size() && !is_group(head)) return false;
  }
  return true;
}

Hdf5Id Hdf5File::open_object(const std::string& name) const {
  TAPER_VALIDATE(exists(name),
                 path_ << " has no " << name << " (wrong kind of file, or an older version?)");
  return {TAPER_HDF5_CALL(path_, H5Oopen(file_.get(), name.c_str(), H5P_DEFAULT)), H5Oclose};
}

bool Hdf5File::is_group(const std::string& name) const {
  return H5Iget_type(open_object(name).get()) == H5I_GROUP;
}

std::vector<std::string> Hdf5File::names(const std::string& group) const {
  const Hdf5Id object = open_object(group);
  std::vector<std::string> found;
  hsize_t index = 0;
  TAPER_HDF5_CALL(path_, H5Literate(
                             object.get(), H5_INDEX_NAME, H5_ITER_INC, &index,
                             [](hid_t, const char* name, const auto*, void* out) -> herr_t {
                               static_cast<std::vector<std::string>*>(out)->emplace_back(name);
                               return 0;
                             },
                             &found));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> Hdf5File::datasets(const std::string& group) const {
  std::vector<std::string> found;
  const std::string prefix = group.ends_with('/') ? group : group + "/";
  for (const auto& name : names(group)) {
    if (is_group(prefix + name)) {
      const auto inner = datasets(prefix + name);
      found.insert(found.end(), inner.begin(), inner.end());
    } else {
      found.push_back(prefix + name);
    }
  }
  return found;
}

Hdf5Id Hdf5File::open_dataset(const std::string& name) const {
  TAPER_VALIDATE(
      exists(name) && !is_group(name),
      path_ << " has no dataset " << name << " (wrong kind of file, or an older version?)");
  return {TAPER_HDF5_CALL(path_, H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT)), H5Dclose};
}

Dims Hdf5File::dims(const std::string& name) const {
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id space(TAPER_HDF5_CALL(path_, H5Dget_space(dataset.get())), H5Sclose);
  const int rank = TAPER_HDF5_CALL(path_, H5Sget_simple_extent_ndims(space.get()));
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  TAPER_HDF5_CALL(path_, H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr));
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Dget_type(dataset.get())), H5Tclose);
  const auto limit = static_cast<hsize_t>(std::numeric_limits<std::int64_t>::max());
  hsize_t bytes = H5Tget_size(stored.get());
  for (const hsize_t size : sizes) {
    TAPER_VALIDATE(size <= limit / std::max<hsize_t>(1, bytes),
                   path_ << ": " << name << " has a dimension of " << size
                         << " (more bytes than can be counted); damaged file?");
    bytes *= std::max<hsize_t>(1, size);
  }
  return {sizes.begin(), sizes.end()};
}

void Hdf5File::check_dims(const std::string& name, const Dims& expected) const {
  const Dims stored = dims(name);
  TAPER_VALIDATE(stored == expected, path_ << ": " << name << " has dimensions "
                                           << dims_text(stored) << " (" << dims_text(expected)
                                           << " expected)");
}

// Parents first: HDF5's own intermediate groups would carry the time.
void Hdf5File::create_group(const std::string& name) {
  if (exists(name)) return;
  create_parent(name);
  const Hdf5Id creation = untimed_properties(path_, H5P_GROUP_CREATE);
  const Hdf5Id group(TAPER_HDF5_CALL(path_, H5Gcreate2(file_.get(), name.c_str(), H5P_DEFAULT,
                                                       creation.get(), H5P_DEFAULT)),
                     H5Gclose);
}

void Hdf5File::create_parent(const std::string& name) {
  const auto slash = name.rfind('/');
  if (slash != std::string::npos && slash > 0) create_group(name.substr(0, slash));
}

// --- numbers

Hdf5Id Hdf5File::create_with(const std::string& name, hid_t type, const Dims& dims,
                             const Hdf5Id& properties) {
  TAPER_INSIST(!exists(name), path_ << " already has " << name << " (names must be distinct)");
  const Hdf5Id space = detail::make_space(path_, dims);
  create_parent(name);
  return {TAPER_HDF5_CALL(path_, H5Dcreate2(file_.get(), name.c_str(), type, space.get(),
                                            H5P_DEFAULT, properties.get(), H5P_DEFAULT)),
          H5Dclose};
}

Hdf5Id Hdf5File::create_raw(const std::string& name, hid_t type, const Dims& dims,
                            const DatasetOptions& options) {
  TAPER_INSIST(options.problems().empty(),
               path_ << ": " << name << ": " << join(options.problems()));
  Hdf5Id dataset = create_with(
      name, type, dims, detail::make_dataset_properties(path_, dims, H5Tget_size(type), options));
  if (!options.units.empty()) set_attribute(name, "units", options.units);
  if (!options.description.empty()) set_attribute(name, "description", options.description);
  return dataset;
}

std::int64_t Hdf5File::reserve_raw(const std::string& name, hid_t type, const Dims& dims) {
  TAPER_EXPECT(!parallel_);
  const Hdf5Id properties =
      detail::make_dataset_properties(path_, dims, H5Tget_size(type), {0, Checksum::kNone});
  TAPER_HDF5_CALL(path_, H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY));
  TAPER_HDF5_CALL(path_, H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER));
  const Hdf5Id dataset = create_with(name, type, dims, properties);
  if (product(dims) == 0) return 0;
  return TAPER_HDF5_CALL(path_, static_cast<std::int64_t>(H5Dget_offset(dataset.get())));
}

void Hdf5File::write_raw(const std::string& name, hid_t type, const void* values, std::size_t count,
                         const Dims& dims, const DatasetOptions& options) {
  TAPER_INSIST(product(dims) == static_cast<std::int64_t>(count),
               path_ << ": " << name << " got " << count << " values (dimensions are "
                     << dims_text(dims) << ")");
  create_raw(name, type, dims, options);
  // All ranks hold the same values: rank 0 writes them, the others take part with nothing.
  const Dims offset(dims.size(), 0);
  if (rank_ == 0 || dims.empty()) {
    write_part_raw(name, type, values, count, offset, dims);
  } else {
    write_part_raw(name, type, nullptr, 0, offset, Dims(dims.size(), 0));
  }
}

void Hdf5File::write_part_raw(const std::string& name, hid_t type, const void* values,
                              std::size_t count, const Dims& offset, const Dims& dims) {
  TAPER_INSIST(product(dims) == static_cast<std::int64_t>(count) && offset.size() == dims.size(),
               path_ << ": " << name << " got " << count << " values (the part is "
                     << dims_text(dims) << " at " << dims_text(offset) << ")");
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id file_space(TAPER_HDF5_CALL(path_, H5Dget_space(dataset.get())), H5Sclose);
  // An array without elements has no place in the file, and a collective write to it fails.
  if (TAPER_HDF5_CALL(path_, H5Sget_simple_extent_npoints(file_space.get())) == 0) return;
  const Hdf5Id memory_space = detail::make_space(path_, dims);
  detail::select_block(path_, file_space.get(), offset, dims);
  const Hdf5Id transfer(TAPER_HDF5_CALL(path_, H5Pcreate(H5P_DATASET_XFER)), H5Pclose);
  if (parallel_) TAPER_HDF5_CALL(path_, H5Pset_dxpl_mpio(transfer.get(), H5FD_MPIO_COLLECTIVE));
  const char nothing = 0;  // HDF5 refuses a null pointer even for no elements
  TAPER_HDF5_CALL(path_, H5Dwrite(dataset.get(), type, memory_space.get(), file_space.get(),
                                  transfer.get(), count == 0 ? &nothing : values));
}

void Hdf5File::read_raw(const std::string& name, hid_t type, void* values, const Dims& offset,
                        const Dims& dims) const {
  const Hdf5Id dataset = open_dataset(name);
  const Hdf5Id stored(TAPER_HDF5_CALL(path_, H5Dget_type(dataset.get())), H5Tclose);
  TAPER_VALIDATE(
      fits(stored.get(), type),
      path_ << ": " << name << " cannot be read without loss (stored as another type of number)");
  const Hdf5Id file_space(TAPER_HDF5_CALL(path_, H5Dget_space(dataset.get())), H5Sclose);
  const Hdf5Id memory_space = detail::make_space(path_, dims);
  if (product(dims) == 0) return;
  if (!offset.empty()) detail::select_block(path_, file_space.get(), offset, dims);
  TAPER_HDF5_CALL(path_, H5Dread(dataset.get(), type, memory_space.get(), file_space.get(),
                                 H5P_DEFAULT, values));
}

void Hdf5File::attach_scale([[maybe_unused]] const std::string& dataset,
                            [[maybe_unused]] int dimension,
                            [[maybe_unused]] const std::string& scale,
                            [[maybe_unused]] const std::string& label) {
#ifdef TAPER_HAVE_HDF5_HL
  TAPER_EXPECT(!parallel_);
  const Hdf5Id scale_id = open_dataset(scale);
  const Hdf5Id dataset_id = open_dataset(dataset);
  if (TAPER_HDF5_CALL(path_, H5DSis_scale(scale_id.get())) == 0) {
    TAPER_HDF5_CALL(path_, H5DSset_scale(scale_id.get(), label.c_str()));
  }
  TAPER_HDF5_CALL(
      path_, H5DSattach_scale(dataset_id.get(), scale_id.get(), static_cast<unsigned>(dimension)));
#endif
}

}  // namespace taper
