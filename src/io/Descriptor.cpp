// SPDX-License-Identifier: Apache-2.0
#include "io/Descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"

namespace taper::detail {

std::string describe_errno(int error) {
  const std::string text = std::generic_category().message(error);
  switch (error) {
    case ENOSPC:
      return "disk full: " + text;
    case EDQUOT:
      return "quota used up: " + text;
    case EFBIG:
      return "file size limit reached: " + text;
    default:
      return text;
  }
}

void throw_errno(const char* action, const std::filesystem::path& path, int error) {
  const char* advice = "";
  if (error == ENOSPC || error == EDQUOT) {
    advice = "; free some space or choose another output directory";
  } else if (error == EFBIG) {
    advice = "; raise the limit (ulimit -f)";
  } else if (error == EACCES || error == EROFS) {
    advice = "; check the permissions";
  } else if (error == ENOENT) {
    advice = "; check the path";
  }
  TAPER_FAIL(ExitCode::kFailure, "cannot " << action << " " << path_text(path) << " ("
                                           << describe_errno(error) << ")" << advice);
}

Descriptor::Descriptor(std::filesystem::path path, int flags)
    : Descriptor(std::move(*open_unless(0, std::move(path), flags))) {}

std::optional<Descriptor> Descriptor::open_unless(int expected, std::filesystem::path path,
                                                  int flags) {
  Descriptor file;
  file.path_ = std::move(path);
  do {
    file.fd_ = ::open(file.path_.c_str(), flags | O_CLOEXEC, 0666);
  } while (file.fd_ < 0 && errno == EINTR);
  if (file.fd_ >= 0) return file;
  if (errno == expected) return std::nullopt;
  throw_errno((flags & O_CREAT) != 0 ? "create" : "open", file.path_, errno);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::int64_t Descriptor::size() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw_errno("examine", path_, errno);
  return status.st_size;
}

void Descriptor::read_at(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read", path_, errno);
    TAPER_VALIDATE(got > 0, path_text(path_) << " ends at byte " << offset << " (" << bytes.size()
                                             << " more bytes expected) is it truncated?");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

void Descriptor::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_errno("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += put;
  }
}

void Descriptor::truncate(std::int64_t size) {
  if (::ftruncate(fd_, size) != 0) throw_errno("set the size of", path_, errno);
}

void Descriptor::reserve(std::int64_t size) {
  if (size <= 0) return;
  int result = 0;
  do {
    result = ::fallocate(fd_, 0, 0, size);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) {
    truncate(size);
    return;
  }
  throw_errno("reserve space for", path_, errno);
}

void Descriptor::sync() {
  int result = 0;
  do {
    result = ::fsync(fd_);
  } while (result != 0 && errno == EINTR);
  // Pipes and some special files cannot be synchronized and need not be.
  if (result != 0 && errno != EINVAL && errno != EROFS) throw_errno("flush", path_, errno);
}

void Descriptor::close() {
  if (fd_ < 0) return;
  const int result = ::close(std::exchange(fd_, -1));
  if (result != 0 && errno != EINTR) throw_errno("close", path_, errno);
}

}  // namespace taper::detail
