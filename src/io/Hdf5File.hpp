// SPDX-License-Identifier: Apache-2.0
//
// HDF5 files of named arrays, strings and attributes. Names are paths ("/metrics/timing_s/gen");
// groups on the way are created as needed. Files opened with a communicator are parallel: there
// every function that creates or writes is Collective over that communicator, with the same
// arguments on all ranks except where said.
#pragma once

#include <hdf5.h>
#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/Hdf5Call.hpp"

namespace taper {

using Dims = std::vector<std::int64_t>;

// Throws Error if it is beyond 64 bits.
std::int64_t product(const Dims& dims);

enum class Checksum { kNone, kFletcher32 };

// Of the elements of a dataset or an attribute, as stored.
enum class StoredType { kText, kI8, kI32, kI64, kU64, kF32, kF64, kOther };
const char* to_string(StoredType type);  // "text", "i8", ..., "another type"

// How an array is stored.
struct Storage {
  bool is_checksummed = false;  // Fletcher-32
  bool is_deflated = false;
};

struct DatasetOptions {
  int compression = 0;  // deflate level, 0..9, 0 is none
  Checksum checksum = Checksum::kFletcher32;
  std::string units = {};        // attribute "units", if not empty
  std::string description = {};  // attribute "description", if not empty
  Dims chunk = {};               // empty: chosen, about 256 KiB; only used with a filter

  std::vector<std::string> problems() const;
};

namespace detail {

template <class T>
concept Hdf5Number = std::same_as<T, float> || std::same_as<T, double> ||
    (std::integral<T> && !std::same_as<T, bool>);

// H5T_NATIVE_... are library calls behind macros, hence a function.
hid_t native_type(bool floating, bool is_signed, std::size_t size);

template <Hdf5Number T>
hid_t native_type() {
  return native_type(std::is_floating_point_v<T>, std::is_signed_v<T>, sizeof(T));
}

}  // namespace detail

template <class T>
struct Hdf5Array {
  std::vector<T> values;  // row-major
  Dims dims;              // empty: a scalar
};

class Hdf5File {
 public:
  // Whether the file has the signature of HDF5; false if there is no file. A damaged one may
  // have lost it. Throws Error if the file cannot be opened.
  static bool has_signature(const std::filesystem::path& path);
  static Hdf5File open_read(const std::filesystem::path& path);
  static Hdf5File create(const std::filesystem::path& path);
  // Never touches a disk; the bytes are had from image(). name is for messages.
  static Hdf5File create_in_memory(const std::string& name);
  // Collective over comm.
  static Hdf5File create_parallel(const std::filesystem::path& path, MPI_Comm comm);

  Hdf5File(Hdf5File&& other) noexcept = default;
  Hdf5File& operator=(Hdf5File&& other) = delete;
  // Closes. A parallel file is left open while an exception passes: closing is collective, and the
  // other ranks may never come.
  ~Hdf5File();

  const std::string& path() const { return path_; }

  // --- looking
  bool exists(const std::string& name) const;
  bool is_group(const std::string& name) const;
  // Names directly inside a group, sorted.
  std::vector<std::string> names(const std::string& group = "/") const;
  // Full paths of all datasets below a group, sorted.
  std::vector<std::string> datasets(const std::string& group = "/") const;
  // Throws Error if the sizes stand for more bytes than can be counted.
  Dims dims(const std::string& name) const;
  StoredType type(const std::string& name) const;
  Storage storage(const std::string& name) const;
  // Reads all of a dataset and forgets it, in parts of at most part_bytes: throws Error naming it
  // if it cannot be read, a checksum is wrong, or its sizes are beyond what the file holds.
  void require_readable(const std::string& name,
                        std::int64_t part_bytes = std::int64_t{64} << 20) const;

  // --- numbers. Empty dims mean a scalar.
  template <detail::Hdf5Number T>
  void write(const std::string& name, std::span<const T> values, const Dims& dims,
             const DatasetOptions& options = {}) {
    write_raw(name, detail::native_type<T>(), values.data(), values.size(), dims, options);
  }
  template <detail::Hdf5Number T>
  void write(const std::string& name, const std::vector<T>& values,
             const DatasetOptions& options = {}) {
    write<T>(name, std::span<const T>(values), {static_cast<std::int64_t>(values.size())}, options);
  }
  // Refuses stored types that do not fit in T without loss (wider, other signedness, float against
  // integer).
  template <detail::Hdf5Number T>
  Hdf5Array<T> read(const std::string& name) const {
    Hdf5Array<T> array{{}, dims(name)};
    array.values.resize(static_cast<std::size_t>(product(array.dims)));
    read_raw(name, detail::native_type<T>(), array.values.data(), {}, array.dims);
    return array;
  }

  // --- parts of an array. Each rank gives its own offset, values and dims (any may be empty:
  // product(dims) == 0). create_dataset once, then any number of write_part, the same number on all
  // ranks.
  template <detail::Hdf5Number T>
  void create_dataset(const std::string& name, const Dims& global_dims,
                      const DatasetOptions& options = {}) {
    create_raw(name, detail::native_type<T>(), global_dims, options);
  }
  template <detail::Hdf5Number T>
  void write_part(const std::string& name, const Dims& offset, std::span<const T> values,
                  const Dims& dims) {
    write_part_raw(name, detail::native_type<T>(), values.data(), values.size(), offset, dims);
  }
  template <detail::Hdf5Number T>
  void write_slab(const std::string& name, const Dims& global_dims, const Dims& offset,
                  std::span<const T> values, const Dims& dims, const DatasetOptions& options = {}) {
    create_dataset<T>(name, global_dims, options);
    write_part<T>(name, offset, values, dims);
  }
  // An array whose elements others write into the closed file (Descriptor::write_at), in native
  // form: one piece, not filled. Returns where they begin, in bytes from the begin of the file; 0
  // if there are none. Serial files only.
  template <detail::Hdf5Number T>
  std::int64_t reserve(const std::string& name, const Dims& dims) {
    return reserve_raw(name, detail::native_type<T>(), dims);
  }
  // Independent: any rank, any time.
  template <detail::Hdf5Number T>
  std::vector<T> read_slab(const std::string& name, const Dims& offset, const Dims& dims) const {
    std::vector<T> values(static_cast<std::size_t>(product(dims)));
    read_raw(name, detail::native_type<T>(), values.data(), offset, dims);
    return values;
  }

  // --- strings: UTF-8 of fixed length, so that parallel files can hold them too. A string cannot
  // end in a zero byte.
  void write_string(const std::string& name, std::string_view text,
                    const DatasetOptions& options = {});
  void write_strings(const std::string& name, std::span<const std::string> texts,
                     const DatasetOptions& options = {});
  std::string read_string(const std::string& name) const;  // a scalar, of fixed or variable length
  std::vector<std::string> read_strings(const std::string& name) const;

  // --- attributes of a group or dataset; "/" is the file. Setting again replaces.
  void set_attribute(const std::string& object, const std::string& name, std::string_view value);
  template <class T>
  requires std::is_arithmetic_v<T>
  void set_attribute(const std::string& object, const std::string& name, T value) {
    if constexpr (std::is_floating_point_v<T>) {
      set_number_attribute(object, name, static_cast<double>(value));
    } else {
      set_number_attribute(object, name, static_cast<std::int64_t>(value));
    }
  }
  bool has_attribute(const std::string& object, const std::string& name) const;
  StoredType attribute_type(const std::string& object, const std::string& name) const;
  std::vector<std::string> attribute_names(const std::string& object) const;
  std::string string_attribute(const std::string& object, const std::string& name) const;
  std::int64_t int_attribute(const std::string& object, const std::string& name) const;
  double double_attribute(const std::string& object, const std::string& name) const;

  void create_group(const std::string& name);  // nothing happens if it exists

  // --- dimension scales. Serial files only. Nothing is done if HDF5 came without its high-level
  // library. Makes a 1-D dataset the scale called label and attaches it to one dimension of a
  // dataset.
  void attach_scale(const std::string& dataset, int dimension, const std::string& scale,
                    const std::string& label);

  // Everything written so far, to disk. Collective for parallel files.
  void flush();
  // Flush and close with errors reported, which the destructor cannot do.
  void close();
  // The bytes of the file, as they would be on disk.
  std::vector<std::byte> image();

 private:
  Hdf5File(std::string path, Hdf5Id file, MPI_Comm comm);

  Hdf5Id open_dataset(const std::string& name) const;
  Hdf5Id open_object(const std::string& name) const;
  Hdf5Id open_attribute(const std::string& object, const std::string& name) const;
  void create_parent(const std::string& name);
  Hdf5Id create_with(const std::string& name, hid_t type, const Dims& dims,
                     const Hdf5Id& properties);
  Hdf5Id create_raw(const std::string& name, hid_t type, const Dims& dims,
                    const DatasetOptions& options);
  std::int64_t reserve_raw(const std::string& name, hid_t type, const Dims& dims);
  void write_raw(const std::string& name, hid_t type, const void* values, std::size_t count,
                 const Dims& dims, const DatasetOptions& options);
  void write_part_raw(const std::string& name, hid_t type, const void* values, std::size_t count,
                      const Dims& offset, const Dims& dims);
  void read_raw(const std::string& name, hid_t type, void* values, const Dims& offset,
                const Dims& dims) const;
  void check_dims(const std::string& name, const Dims& expected) const;
  Hdf5Id replace_attribute(const std::string& object, const std::string& name, hid_t type);
  void read_number_attribute(const std::string& object, const std::string& name, hid_t type,
                             void* value) const;
  void set_number_attribute(const std::string& object, const std::string& name, double value);
  void set_number_attribute(const std::string& object, const std::string& name, std::int64_t value);

  std::string path_;
  Hdf5Id file_;
  bool parallel_ = false;
  int rank_ = 0;        // in the communicator of a parallel file
  int exceptions_ = 0;  // passing when the file was opened
};

}  // namespace taper
