// SPDX-License-Identifier: Apache-2.0
//
// The one way to call HDF5: TAPER_HDF5_CALL(file, H5Fflush(id, H5F_SCOPE_LOCAL)) returns what the
// call returned, or throws Error with the file name, HDF5's own error text and the rank. HDF5
// prints nothing itself meanwhile.
#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>
#include <utility>

#define TAPER_HDF5_CALL(file, expression) \
  ::taper::detail::call_hdf5((file), #expression, [&] { return (expression); })

namespace taper {

// A HDF5 identifier with its closing function. Move-only.
class Hdf5Id {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Id() = default;
  Hdf5Id(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Id(Hdf5Id&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Id() { reset(); }

  hid_t get() const { return id_; }
  bool is_open() const { return id_ >= 0; }
  // Gives the identifier away, unclosed.
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }
  // Closes now; errors are swallowed (TAPER_HDF5_CALL on release() reports them).
  void reset();

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

namespace detail {

// Switches HDF5's printing of errors off while it lives.
class Hdf5Silence {
 public:
  Hdf5Silence();
  ~Hdf5Silence();
  Hdf5Silence(const Hdf5Silence&) = delete;
  Hdf5Silence& operator=(const Hdf5Silence&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// Throws Error with the current HDF5 error stack, or, if a write found no room, with that
// reason.
[[noreturn]] void throw_hdf5_error(std::string_view file, const char* expression);

// All results of HDF5 calls are signed and negative on failure.
template <class Call>
auto call_hdf5(std::string_view file, const char* expression, Call&& call) {
  const Hdf5Silence silence;
  const auto result = call();
  if (result < 0) throw_hdf5_error(file, expression);
  return result;
}

}  // namespace detail
}  // namespace taper
