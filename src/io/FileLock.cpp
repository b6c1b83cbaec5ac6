// SPDX-License-Identifier: Apache-2.0
#include "io/FileLock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"

namespace taper {
namespace {

// Whether another process has the kernel's lock of the file; otherwise this one has it now, if the
// file system knows such locks.
bool is_locked_elsewhere(const detail::Descriptor& file) {
  int result = 0;
  do {
    result = ::flock(file.fd(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result != 0 && errno == EWOULDBLOCK;
}

std::optional<detail::LockHolder> holder_in(const detail::Descriptor& file) {
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return detail::parse_holder(text);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

FileLock::FileLock(std::filesystem::path path, std::string what, FileLockTimes times)
    : path_(std::move(path)), what_(std::move(what)), times_(times) {}

FileLock::~FileLock() {
  if (!file_.is_open()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  signal_.notify_all();
  beating_.join();
  std::error_code ignored;
  try {
    // Not the file of somebody else, where a user has removed ours.
    if (is_in_place(file_)) std::filesystem::remove(path_, ignored);
  } catch (const Error&) {  // the next one finds the file of a process that is gone
  }
}

bool FileLock::try_take() {
  TAPER_EXPECT(!file_.is_open());
  if (auto made = detail::Descriptor::open_unless(EEXIST, path_, O_RDWR | O_CREAT | O_EXCL)) {
    // Another process may just be looking into the empty file: it leaves that alone for long.
    for (int i = 0; i < 100 && is_locked_elsewhere(*made); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    hold(std::move(*made));
    return true;
  }
  auto file = detail::Descriptor::open_unless(ENOENT, path_, O_RDWR);
  if (!file) return false;  // given back this moment
  const bool locked = is_locked_elsewhere(*file);
  if (!is_in_place(*file)) return false;
  const auto holder = holder_in(*file);
  const bool here = holder && detail::is_here(*holder);
  if (locked || (here && detail::is_alive(*holder))) {
    wait_for_end(holder);
    return false;
  }
  alive_since_.reset();
  if (!here && !is_silent(*file, holder)) return false;
  TAPER_INFO("taking over " << path_.string() << " of " << detail::describe(holder)
                            << ", which has ended");
  hold(std::move(*file));
  return true;
}

void FileLock::take() {
  while (!try_take()) std::this_thread::sleep_for(kPause);
}

FileLock::Sign FileLock::sign_of(const detail::Descriptor& file) {
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) detail::throw_errno("examine", file.path(), errno);
  return {status.st_ino,
          status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
}

// Whether the path still leads to this file: its holder may have removed it meanwhile.
bool FileLock::is_in_place(const detail::Descriptor& file) const {
  struct stat status {};
  return ::stat(path_.c_str(), &status) == 0 && status.st_ino == sign_of(file).inode;
}

void FileLock::hold(detail::Descriptor file) {
  const std::string text = detail::to_text(detail::this_process());
  try {
    file.truncate(0);
    file.write_at(0, std::as_bytes(std::span(text.data(), text.size())));
    file.sync();
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    throw;
  }
  file_ = std::move(file);
  beating_ = std::thread([this] { beat(); });
}

// A job that was killed a moment ago, or is about to end, gets some seconds.
void FileLock::wait_for_end(const std::optional<detail::LockHolder>& holder) {
  silent_since_.reset();
  if (!alive_since_) alive_since_ = Clock::now();
  if (seconds_since(*alive_since_) >= times_.grace) refuse(holder);
}

// Whether the holder has given no sign of life for long. Throws Error where it has given one.
bool FileLock::is_silent(const detail::Descriptor& file,
                         const std::optional<detail::LockHolder>& holder) {
  const Sign now = sign_of(file);
  if (!silent_since_) {
    silent_since_ = Clock::now();
    seen_ = now;
    TAPER_INFO("waiting up to " << times_.silence << " s for a sign of life of "
                                << detail::describe(holder) << ", which has " << path_.string());
  }
  if (now != seen_) refuse(holder);
  return seconds_since(*silent_since_) >= times_.silence;
}

void FileLock::refuse(const std::optional<detail::LockHolder>& holder) const {
  const bool here = holder && detail::is_here(*holder);
  TAPER_FAIL(ExitCode::kBadInput,
             what_ << " is in use by another job (" << detail::describe(holder) << "; "
                   << path_.string()
                   << "); wait for its end or stop it, or choose another directory"
                   << (here ? "" : "; where that job is surely over, remove the file"));
}

void FileLock::beat() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> pause(times_.beat);
  while (!signal_.wait_for(lock, pause, [this] { return over_; }))
    ::futimens(file_.fd(), nullptr);  // what prevents it prevents the results, too, and shows there
}

}  // namespace taper
