// SPDX-License-Identifier: Apache-2.0
#include "io/Hdf5Call.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Descriptor.hpp"

namespace taper {

void Hdf5Id::reset() {
  if (id_ < 0) return;
  const detail::Hdf5Silence silence;
  close_(release());
}

namespace detail {

namespace {

// From the innermost call to the outermost.
std::vector<std::string> error_messages() {
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
  return messages;
}

// The error number of a write that found no room, or 0. HDF5 and MPI-IO pass the system's reason on
// only as text, MPI-IO in words of its own for two of them.
int no_room_error(const std::vector<std::string>& messages) {
  const std::pair<int, const char*> words[] = {{ENOSPC, "Not enough space for file"},
                                               {EDQUOT, "Quota exceeded for files"},
                                               {EFBIG, "File too large"}};
  for (const std::string& message : messages) {
    for (const auto& [error, words_of_mpi] : words) {
      const std::string words_of_system = std::generic_category().message(error);
      if (message.find(words_of_system) != std::string::npos ||
          message.find(words_of_mpi) != std::string::npos)
        return error;
    }
  }
  return 0;
}

// The innermost message tells what is wrong, the outer ones where; both ends of the stack are worth
// reading.
std::string error_text(std::vector<std::string> messages) {
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
  const std::vector<std::string> messages = error_messages();
  H5Eclear2(H5E_DEFAULT);
  if (const int error = no_room_error(messages); error != 0)
    throw_errno("write", std::filesystem::path(file), error);
  const std::string text = error_text(messages);
  const std::string_view call(expression);
  TAPER_FAIL(ExitCode::kFailure, "HDF5 failed on " << path_text(file) << " ("
                                                   << call.substr(0, call.find('(')) << ": " << text
                                                   << ") on rank " << log_rank());
}

}  // namespace detail
}  // namespace taper
