// SPDX-License-Identifier: Apache-2.0
//
// Files that others may read at any moment are written aside and renamed: a reader finds the old
// file or the new one, never a half. The side file is always <path>.part, so that what a killed run
// left is overwritten by the next.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "io/Descriptor.hpp"

namespace taper {

// <path>.part
std::filesystem::path part_path(const std::filesystem::path& path);

// Makes the entries of a directory durable (a rename is, only after this).
void sync_directory(const std::filesystem::path& directory);

// Flushes part to disk, renames it to path, flushes the directory. For files that another library
// has written and closed.
void commit_file(const std::filesystem::path& part, const std::filesystem::path& path);

// One file being replaced. Without commit() the old file stays and the side file is removed.
class AtomicFile {
 public:
  // Creates <path>.part (missing directories too).
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) = delete;
  ~AtomicFile();

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& part() const { return part_; }

  // Appends.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // The open side file, for writes at given offsets.
  detail::Descriptor& descriptor() { return file_; }

  // Flush, rename, flush the directory. Once.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path part_;
  detail::Descriptor file_;
  std::int64_t position_ = 0;
  bool pending_ = true;
};

// A directory being written aside: removed, with what is in it, unless it is renamed. Nothing for
// an empty path, so that only one rank of several need have one.
class AsideDirectory {
 public:
  // Creates it anew.
  explicit AsideDirectory(std::filesystem::path path);
  AsideDirectory(const AsideDirectory&) = delete;
  AsideDirectory& operator=(const AsideDirectory&) = delete;
  ~AsideDirectory();

  // Puts it in the place of `target`, whose old content is removed, durably. Once. If the file
  // system can, the two change places in one step; elsewhere the old content is renamed to
  // old_path(target) in between, and a kill just then leaves nothing under `target`.
  void rename_to(const std::filesystem::path& target);

 private:
  std::filesystem::path path_;
};

// <target>.old
std::filesystem::path old_path(const std::filesystem::path& target);

// After a kill inside rename_to: puts <target>.old back if there is no `target`, removes it
// if there is one. Nothing without it.
void finish_replacement(const std::filesystem::path& target);

// Replaces path by content in one step.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace taper
