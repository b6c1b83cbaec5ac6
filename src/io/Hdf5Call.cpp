// SPDX-License-Identifier: Apache-2.0
#include "io/Hdf5Call.hpp"

#include <algorithm>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"

namespace taper {

void Hdf5Id::reset() {
  if (id_ < 0) return;
  const detail::Hdf5Silence silence;
  close_(release());
}

namespace detail {

namespace {

// The innermost message tells what is wrong, the outer ones where; both ends of the stack are worth
// reading.
std::string error_text() {
  std::vector<std::string> messages;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* entry, void* out) -> herr_t {
        if (entry->desc != nullptr && entry->desc[0] != '\0') {
          static_cast<std::vector<std::string>*>(out)->emplace_back(entry->desc);
        }
        return 0;
      },
      &messages);
  if (messages.empty()) return "HDF5 gave no reason";
  constexpr std::size_t kMostMessages = 4;
  if (messages.size() > kMostMessages) messages.resize(kMostMessages);
  return join(messages, "; ");
}

}  // namespace

Hdf5Silence::Hdf5Silence() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Silence::~Hdf5Silence() {
  H5Eset_auto2(H5E_DEFAULT, function_, data_);
}

void throw_hdf5_error(std::string_view file, const char* expression) {
  const std::string text = error_text();
  H5Eclear2(H5E_DEFAULT);
  const std::string_view call(expression);
  TAPER_FAIL(ExitCode::kFailure, "HDF5 failed on " << path_text(file) << " ("
                                                   << call.substr(0, call.find('(')) << ": " << text
                                                   << ") on rank " << log_rank());
}

}  // namespace detail
}  // namespace taper
