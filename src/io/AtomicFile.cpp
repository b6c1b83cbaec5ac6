// SPDX-License-Identifier: Apache-2.0
#include "io/AtomicFile.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/Error.hpp"

namespace taper {

namespace {

std::filesystem::path directory_of(const std::filesystem::path& path) {
  const auto parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

void rename_durably(const std::filesystem::path& part, const std::filesystem::path& path) {
  if (std::rename(part.c_str(), path.c_str()) != 0) {
    detail::throw_errno("rename the finished side file to", path, errno);
  }
  sync_directory(directory_of(path));
}

// Swaps two directories in one step. False if the system or the file system cannot.
bool exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
#ifdef RENAME_EXCHANGE
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno != ENOSYS && errno != EINVAL && errno != ENOTSUP)
    detail::throw_errno("exchange the finished directory with", b, errno);
#else
  static_cast<void>(a), static_cast<void>(b);
#endif
  return false;
}

}  // namespace

std::filesystem::path old_path(const std::filesystem::path& target) {
  auto old = target;
  old += ".old";
  return old;
}

std::filesystem::path part_path(const std::filesystem::path& path) {
  auto part = path;
  part += ".part";
  return part;
}

void sync_directory(const std::filesystem::path& directory) {
  detail::Descriptor(directory, O_RDONLY | O_DIRECTORY).sync();
}

void commit_file(const std::filesystem::path& part, const std::filesystem::path& path) {
  detail::Descriptor file(part, O_RDWR);
  file.sync();
  file.close();
  rename_durably(part, path);
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), part_(part_path(path_)) {
  std::error_code error;
  std::filesystem::create_directories(directory_of(path_), error);
  if (error) detail::throw_errno("create the directory of", path_, error.value());
  file_ = detail::Descriptor(part_, O_RDWR | O_CREAT | O_TRUNC);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::move(other.part_)),
      file_(std::move(other.file_)),
      position_(other.position_),
      pending_(std::exchange(other.pending_, false)) {}

AtomicFile::~AtomicFile() {
  if (!pending_) return;
  std::error_code ignored;
  std::filesystem::remove(part_, ignored);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  file_.write_at(position_, bytes);
  position_ += static_cast<std::int64_t>(bytes.size());
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::commit() {
  TAPER_EXPECT(pending_);
  file_.sync();
  file_.close();
  rename_durably(part_, path_);
  pending_ = false;
}

AsideDirectory::AsideDirectory(std::filesystem::path path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}

AsideDirectory::~AsideDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

void AsideDirectory::rename_to(const std::filesystem::path& target) {
  TAPER_EXPECT(!path_.empty());
  sync_directory(path_);
  const auto old = old_path(target);
  if (std::filesystem::exists(target)) {
    if (exchange(path_, target)) {
      sync_directory(directory_of(target));
      std::filesystem::remove_all(std::exchange(path_, {}));  // the former content
      return;
    }
    std::filesystem::remove_all(old);
    std::filesystem::rename(target, old);
  }
  std::filesystem::rename(path_, target);
  path_.clear();
  sync_directory(directory_of(target));
  std::filesystem::remove_all(old);
}

void finish_replacement(const std::filesystem::path& target) {
  const auto old = old_path(target);
  if (!std::filesystem::exists(old)) return;
  if (std::filesystem::exists(target)) {
    std::filesystem::remove_all(old);
  } else {
    std::filesystem::rename(old, target);
    sync_directory(directory_of(target));
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

}  // namespace taper
