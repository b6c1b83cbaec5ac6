// SPDX-License-Identifier: Apache-2.0
#include "io/FileLock.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <span>
#include <system_error>
#include <thread>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Json.hpp"

namespace taper {
namespace {

struct Holder {
  std::string host;
  std::int64_t process = 0;
  std::string since;  // UTC
  std::string slurm_job;
};

std::string text_of_this_process() {
  OrderedJson json = {{"host", host_name()}, {"process", ::getpid()}, {"since", utc_text()}};
  if (const char* job = std::getenv("SLURM_JOB_ID")) json["slurm_job"] = job;
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

// Nothing if the file is empty, gone, or just being written.
std::optional<Holder> holder_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file, nullptr, false);
  try {
    return Holder{json.at("host"), json.at("process"), json.at("since"),
                  json.value("slurm_job", std::string())};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string describe(const std::optional<Holder>& holder) {
  if (!holder) return "a process that has not written its name";
  return "process " + std::to_string(holder->process) + " on " + holder->host + " since " +
         holder->since + (holder->slurm_job.empty() ? "" : ", Slurm job " + holder->slurm_job);
}

// Without the kernel's lock: as the text says.
bool may_be_alive(const std::optional<Holder>& holder) {
  if (!holder) return false;
  if (holder->host != host_name()) return true;
  return ::kill(static_cast<pid_t>(holder->process), 0) == 0 || errno == EPERM;
}

// kind: LOCK_EX or LOCK_SH. Whether this process has the kernel's lock now, or nobody seems to have
// the file if the file system has no locks.
bool lock(const detail::Descriptor& file, int kind) {
  int result = 0;
  do {
    result = ::flock(file.fd(), kind | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  return errno != EWOULDBLOCK && !may_be_alive(holder_in(file.path()));
}

// Whether the path still leads to this file: its holder may have removed it meanwhile.
bool is_in_place(const detail::Descriptor& file) {
  struct stat ours {
  }, there{};
  return ::fstat(file.fd(), &ours) == 0 && ::stat(file.path().c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

}  // namespace

FileLock::~FileLock() {
  if (!file_.is_open()) return;
  std::error_code ignored;
  if (stays_)
    ::fcntl(file_.fd(), F_DUPFD_CLOEXEC, 0);  // the kernel's lock lives as long as a copy is open
  else if (is_in_place(file_))
    std::filesystem::remove(path_, ignored);
}

bool FileLock::try_take() {
  TAPER_EXPECT(!file_.is_open());
  std::error_code ignored;  // opening the file tells
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), ignored);
  detail::Descriptor file(path_, O_RDWR | O_CREAT);
  if (!lock(file, LOCK_EX)) {
    refuse_after_grace();
    return false;
  }
  if (!is_in_place(file)) return false;
  if (const auto last = holder_in(path_))
    TAPER_INFO("taking over " << path_text(path_) << " of " << describe(last)
                              << ", which ended without removing it");
  try {
    const std::string text = text_of_this_process();
    file.truncate(0);
    file.write_at(0, std::as_bytes(std::span(text.data(), text.size())));
    file.sync();
  } catch (const Error&) {
    std::filesystem::remove(path_, ignored);
    throw;
  }
  file_ = std::move(file);
  return true;
}

bool FileLock::try_free() {
  if (!is_held(path_)) return true;
  refuse_after_grace();
  return false;
}

void FileLock::take() {
  while (!try_take()) std::this_thread::sleep_for(kPause);
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const auto file = detail::Descriptor::open_unless(ENOENT, path, O_RDONLY);
  return file && !lock(*file, LOCK_SH);
}

void FileLock::refuse_after_grace() {
  const auto now = std::chrono::steady_clock::now();
  if (!held_since_) held_since_ = now;
  if (now - *held_since_ < grace_) return;
  TAPER_FAIL(ExitCode::kBadInput, what_ << " is in use by another job ("
                                        << describe(holder_in(path_)) << "; " << path_text(path_)
                                        << "); wait until it ends, stop it, or choose another "
                                           "directory; if that job has certainly ended, remove "
                                           "the file");
}

}  // namespace taper
