// SPDX-License-Identifier: Apache-2.0
#include "io/detail/LockHolder.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/Text.hpp"
#include "base/TextFile.hpp"
#include "io/Json.hpp"

namespace taper::detail {
namespace {

// The boot of the kernel and the name space of process numbers; empty where the system has no
// /proc: such a place is never the same as another.
std::string this_place() {
  std::error_code error;
  const auto numbers = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  return error || boot.empty() ? "" : boot + " " + numbers.string();
}

// What /proc/PID/stat says of a process.
struct ProcessStat {
  std::string state;         // one letter
  std::uint64_t flags = 0;   // of the kernel
  std::int64_t started = 0;  // clock ticks since the machine started
};

// Nothing where there is no such process, or one that has ended and waits for its parent.
std::optional<ProcessStat> stat_of(std::int64_t process) {
  const std::string line = first_line("/proc/" + std::to_string(process) + "/stat");
  const auto name_end = line.rfind(')');  // names may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  ProcessStat stat;
  fields >> stat.state;
  for (int field = 4; field < 9; ++field) fields >> skipped;
  fields >> stat.flags;
  for (int field = 10; field < 22; ++field) fields >> skipped;
  fields >> stat.started;
  if (!fields || stat.state == "Z" || stat.state == "X") return std::nullopt;
  return stat;
}

// The signals that wait for a process, signal 1 in the lowest bit.
std::uint64_t pending_signals(std::int64_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  std::uint64_t pending = 0;
  for (std::string line; std::getline(in, line);)
    for (const char* key : {"SigPnd:", "ShdPnd:"})
      if (line.starts_with(key)) pending |= std::strtoull(line.c_str() + 7, nullptr, 16);
  return pending;
}

}  // namespace

LockHolder this_process() {
  const char* job = std::getenv("SLURM_JOB_ID");
  const std::int64_t process = ::getpid();
  return {host_name(),
          this_place(),
          process,
          stat_of(process).value_or(ProcessStat{}).started,
          job == nullptr ? "" : job,
          utc_text()};
}

std::string to_text(const LockHolder& holder) {
  OrderedJson json;
  json["host"] = holder.host;
  json["process"] = holder.process;
  json["since"] = holder.since;
  if (!holder.slurm_job.empty()) json["slurm_job"] = holder.slurm_job;
  json["place"] = holder.place;
  json["started"] = holder.started;
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::optional<LockHolder> parse_holder(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    return LockHolder{json.at("host"),
                      json.at("place"),
                      json.at("process"),
                      json.at("started"),
                      json.value("slurm_job", std::string()),
                      json.at("since")};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

bool is_here(const LockHolder& holder) {
  const std::string here = this_place();
  return !here.empty() && holder.place == here;
}

bool is_alive(const LockHolder& holder) {
  const auto stat = stat_of(holder.process);
  return stat && stat->started == holder.started;
}

bool is_ending(const LockHolder& holder) {
  constexpr std::uint64_t kExiting = 0x4;  // PF_EXITING
  const auto stat = stat_of(holder.process);
  if (!stat || (stat->flags & kExiting) != 0) return true;
  const std::uint64_t pending = pending_signals(holder.process);
  for (const int signal : {SIGHUP, SIGINT, SIGKILL, SIGUSR1, SIGTERM})
    if ((pending >> (signal - 1) & 1) != 0) return true;
  return false;
}

std::string describe(const std::optional<LockHolder>& holder) {
  if (!holder) return "a process that has not said its name";
  return "process " + std::to_string(holder->process) + " on " + holder->host + " since " +
         holder->since + (holder->slurm_job.empty() ? "" : ", Slurm job " + holder->slurm_job);
}

}  // namespace taper::detail
