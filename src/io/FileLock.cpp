// SPDX-License-Identifier: Apache-2.0
#include "io/FileLock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"

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

// Up to 4 KiB of the file, as much as there is: another process may be writing it. Nothing where it
// was removed on another machine meanwhile (NFS).
std::optional<std::string> text_in(const detail::Descriptor& file) {
  std::array<char, 4096> buffer;
  std::size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t got =
        ::pread(file.fd(), buffer.data() + size, buffer.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ESTALE) return std::nullopt;
    if (got < 0) detail::throw_errno("read", file.path(), errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return std::string(buffer.data(), size);
}

// Who has the lock by what stands in the file, if that is a whole name.
std::optional<detail::LockHolder> holder_in(const detail::Descriptor& file) {
  const auto text = text_in(file);
  return text ? detail::parse_holder(*text) : std::nullopt;
}

// Whether a process of this machine has the lock and is not about to end.
bool is_at_work(const std::optional<detail::LockHolder>& holder) {
  return holder && detail::is_here(*holder) && detail::is_alive(*holder) &&
         !detail::is_ending(*holder);
}

[[noreturn]] void end_process(const std::string& why) {
  TAPER_ERROR(why);
  // No destructors and no MPI_Finalize: another thread is at work on what is no longer ours.
  ::_exit(static_cast<int>(ExitCode::kFailure));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

FileLock::FileLock(std::filesystem::path path, std::string what, FileLockTimes times,
                   std::function<void(const std::string&)> on_loss)
    : path_(std::move(path)),
      what_(std::move(what)),
      times_(times),
      on_loss_(on_loss ? std::move(on_loss) : end_process) {}

FileLock::~FileLock() {
  if (!file_.is_open()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  signal_.notify_all();
  if (beating_.joinable()) beating_.join();
  std::error_code ignored;
  if (!stays_ && !is_lost()) std::filesystem::remove(path_, ignored);
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
  const auto text = text_in(*file);
  if (!text || !is_in_place(*file)) return false;
  const auto holder = detail::parse_holder(*text);
  if (is_at_work(holder)) refuse(holder);
  const bool here = holder && detail::is_here(*holder);
  if (locked || (here && detail::is_alive(*holder))) {
    refuse_after_grace(holder);
    return false;
  }
  alive_since_.reset();
  if (!here && !watch_for_silence(*file, holder)) return false;
  TAPER_INFO("taking over " << path_text(path_) << " of " << detail::describe(holder)
                            << ", which has ended");
  hold(std::move(*file));
  return true;
}

bool FileLock::is_abandoned() const {
  const auto file = detail::Descriptor::open_unless(ENOENT, path_, O_RDONLY);
  if (!file) return true;
  const auto holder = holder_in(*file);
  return holder && detail::is_here(*holder) && !detail::is_alive(*holder);
}

void FileLock::require_free() const {
  const auto file = detail::Descriptor::open_unless(ENOENT, path_, O_RDONLY);
  if (!file) return;
  if (const auto holder = holder_in(*file); is_at_work(holder)) refuse(holder);
}

void FileLock::take() {
  while (!try_take()) std::this_thread::sleep_for(kPause);
}

std::optional<FileLock::Sign> FileLock::sign_of(const detail::Descriptor& file) {
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) {
    if (errno == ESTALE) return std::nullopt;
    detail::throw_errno("examine", file.path(), errno);
  }
  return Sign{status.st_ino,
              status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
}

// Whether the path still leads to this file: its holder may have removed it meanwhile.
bool FileLock::is_in_place(const detail::Descriptor& file) const {
  const auto sign = sign_of(file);
  struct stat status {};
  return sign && ::stat(path_.c_str(), &status) == 0 && status.st_ino == sign->inode;
}

// Whether the path leads to a file that is not this process's any more, or to none. What cannot be
// known for the moment (a file server that does not answer) is no loss.
bool FileLock::is_lost() const {
  try {
    const auto file = detail::Descriptor::open_unless(ENOENT, path_, O_RDONLY);
    if (!file) return true;
    const auto text = text_in(*file);
    return text && *text != text_;
  } catch (const Error&) {
    return false;
  }
}

void FileLock::hold(detail::Descriptor file) {
  text_ = detail::to_text(detail::this_process());
  try {
    file.truncate(0);
    file.write_at(0, std::as_bytes(std::span(text_.data(), text_.size())));
    file.sync();
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    throw;
  }
  file_ = std::move(file);  // from here on the destructor removes it
  try {
    beating_ = std::thread([this] { beat(); });
  } catch (const std::system_error& error) {
    TAPER_FAIL(ExitCode::kFailure, "cannot start the thread that keeps "
                                       << path_text(path_) << " alive (" << error.what()
                                       << "); raise the limits of processes and memory (ulimit)");
  }
}

// A job that is about to end gets some seconds, and so does who has the kernel's lock without being
// the process in the file: it just looks, or has not written its name yet. The silence that
// watch_for_silence() measures goes on: what looks alive may be another one that just looks, too.
void FileLock::refuse_after_grace(const std::optional<detail::LockHolder>& holder) {
  if (!alive_since_) alive_since_ = Clock::now();
  if (seconds_since(*alive_since_) >= times_.grace) refuse(holder);
}

// True once the holder has given no sign of life for long. Throws Error where it has given one.
bool FileLock::watch_for_silence(const detail::Descriptor& file,
                                 const std::optional<detail::LockHolder>& holder) {
  const auto now = sign_of(file);
  if (!now) return false;
  if (!silent_since_) {
    silent_since_ = Clock::now();
    seen_ = *now;
    TAPER_INFO("waiting up to " << times_.silence << " s for a sign of life of "
                                << detail::describe(holder) << ", which has " << path_text(path_));
  }
  if (*now != seen_) refuse(holder);
  return seconds_since(*silent_since_) >= times_.silence;
}

void FileLock::refuse(const std::optional<detail::LockHolder>& holder) const {
  const bool here = holder && detail::is_here(*holder);
  TAPER_FAIL(ExitCode::kBadInput,
             what_ << " is in use by another job (" << detail::describe(holder) << "; "
                   << path_text(path_)
                   << "); wait for its end or stop it, or choose another directory"
                   << (here ? "" : "; where that job is surely over, remove the file"));
}

void FileLock::beat() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> pause(times_.beat);
  while (!signal_.wait_for(lock, pause, [this] { return over_; })) {
    if (is_lost()) {
      on_loss_(what_ + " is no longer this job's: " + path_text(path_) +
               " was removed or taken over, as happens to a job that is suspended for long; this "
               "job ends, since two would mix their results");
      return;
    }
    ::futimens(file_.fd(), nullptr);  // what prevents it prevents the results, too, and shows there
  }
}

}  // namespace taper
