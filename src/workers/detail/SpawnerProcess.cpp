// SPDX-License-Identifier: Apache-2.0
//
// The inside of the spawner process: one thread, no MPI, nothing of the job but the socket.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/Bytes.hpp"
#include "base/Timer.hpp"
#include "workers/Spawner.hpp"
#include "workers/detail/SpawnerMessages.hpp"

extern "C" char** environ;

namespace taper::detail {
namespace {

// What launchers of MPI tell their processes: a worker that uses MPI itself must not take it for
// its own.
constexpr const char* kLauncherPrefixes[] = {"PMI_",      "PMI2_", "PMIX_",      "OMPI_",
                                             "MPI_LOCAL", "HYDI_", "TAPER_FAULT"};

void pause_shortly() {
  ::poll(nullptr, 0, 5);  // milliseconds
}

// Descriptors of the launcher must end with the rank, not with this process.
void close_all_but(int kept) {
  std::vector<int> found;
  if (DIR* folder = ::opendir("/proc/self/fd")) {
    while (const dirent* entry = ::readdir(folder)) found.push_back(std::atoi(entry->d_name));
    ::closedir(folder);
  }
  for (const int fd : found)
    if (fd > STDERR_FILENO && fd != kept) ::close(fd);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  if (nothing > STDERR_FILENO) ::close(nothing);
}

void forget_launcher() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry)
    for (const char* prefix : kLauncherPrefixes)
      if (std::strncmp(*entry, prefix, std::strlen(prefix)) == 0)
        names.emplace_back(*entry, std::strcspn(*entry, "="));
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

struct Pipe {
  Handle read, write;
  bool open() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read = Handle(ends[0]);
    write = Handle(ends[1]);
    return true;
  }
};

[[noreturn]] void become_worker(const SpawnerRequest& request, int in, int out, int log, int report,
                                pid_t spawner) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != spawner) ::_exit(1);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  reset_signals();
  for (const std::string& entry : request.environment) ::putenv(const_cast<char*>(entry.c_str()));
  std::vector<char*> arguments;
  for (const std::string& text : request.arguments)
    arguments.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

class Workers {
 public:
  void serve(int socket) {
    std::string bytes;
    while (receive_message(socket, bytes)) {
      const SpawnerRequest request = unpack_request(bytes);
      if (request.order == SpawnerOrder::kStart)
        start(request, socket);
      else
        stop(request, socket);
    }
  }

  // Their streams are closed: what does not leave by itself is ended.
  void end_all() {
    const Timer timer;
    while (!pids_.empty() && timer.seconds() < Spawner::kGraceSeconds) {
      std::erase_if(pids_, [](pid_t pid) {
        // Left in the table of processes until its session is ended, so that the id stays its own.
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == pid && end_session(pid);
      });
      pause_shortly();
    }
    for (const pid_t pid : pids_) end_session(pid);
  }

 private:
  static bool end_session(pid_t pid, int* status = nullptr) {
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
    return true;
  }

  static void reply(int socket, const SpawnerReply& what, const std::vector<int>& ends = {}) {
    std::string bytes;
    ByteWriter(bytes).value(what);
    send_message(socket, bytes, ends);
  }

  void start(const SpawnerRequest& request, int socket) {
    Pipe in, out, report;
    if (!in.open() || !out.open() || !report.open())
      return reply(socket, {-1, StartStep::kPipes, errno, 0});
    const Handle log(::open(request.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!log.is_open()) return reply(socket, {-1, StartStep::kLog, errno, 0});
    const pid_t spawner = ::getpid(), pid = ::fork();
    if (pid < 0) return reply(socket, {-1, StartStep::kPipes, errno, 0});
    if (pid == 0)
      become_worker(request, in.read.fd(), out.write.fd(), log.fd(), report.write.fd(), spawner);
    report.write.reset();
    int error = 0;
    ssize_t got = 0;
    do {  // closed by a successful exec
      got = ::read(report.read.fd(), &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
      end_session(pid);
      return reply(socket, {-1, StartStep::kProgram, error, 0});
    }
    pids_.push_back(pid);
    reply(socket, {pid, StartStep::kNone, 0, 0}, {in.write.fd(), out.read.fd()});
  }

  void stop(const SpawnerRequest& request, int socket) {
    SpawnerReply what{request.pid, StartStep::kNone, 0, 0};
    const Timer timer;
    siginfo_t info{};
    while (request.order == SpawnerOrder::kStopSoon && timer.seconds() < Spawner::kMomentSeconds &&
           ::waitid(P_PID, static_cast<id_t>(request.pid), &info, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           info.si_pid == 0)
      pause_shortly();
    if (std::erase(pids_, request.pid) > 0) end_session(request.pid, &what.status);
    reply(socket, what);
  }

  std::vector<pid_t> pids_;
};

}  // namespace

void serve_as_spawner(Handle socket) {
  if (socket.fd() <= STDERR_FILENO)  // of a job without standard streams
    socket = Handle(::fcntl(socket.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  ::setsid();
  ::prctl(PR_SET_NAME, "taper-spawner");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE})
    ::signal(signal, SIG_IGN);  // the rank decides
  close_all_but(socket.fd());
  forget_launcher();
  Workers workers;
  workers.serve(socket.fd());
  workers.end_all();
  ::_exit(0);
}

}  // namespace taper::detail
