// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace taper::detail {

// "disk full: No space left on device" and the like. The kinds of "no room" that a user can cure
// are named as such.
std::string describe_errno(int error);

// Throws Error "cannot <action> <path> (<reason>) <suggestion>".
[[noreturn]] void throw_errno(const char* action, const std::filesystem::path& path, int error);

// An open POSIX file. Move-only, closes itself. Every failure throws Error with the path and the
// reason.
class Descriptor {
 public:
  Descriptor() = default;
  // flags and mode as in open(2); O_CLOEXEC is added. A new file gets 0666 less the umask.
  Descriptor(std::filesystem::path path, int flags);
  // The same, but nothing if open(2) fails with the error `expected` (EEXIST, ENOENT).
  static std::optional<Descriptor> open_unless(int expected, std::filesystem::path path, int flags);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }

  std::int64_t size() const;
  // Reads exactly bytes.size() bytes.
  void read_at(std::int64_t offset, std::span<std::byte> bytes) const;
  void write_at(std::int64_t offset, std::span<const std::byte> bytes);
  void truncate(std::int64_t size);
  // Reserves the space now, so that a full disk shows before the work. Does nothing if the file
  // system cannot.
  void reserve(std::int64_t size);
  void sync();
  // Reports the errors that close(2) reports; the destructor swallows them.
  void close();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace taper::detail
