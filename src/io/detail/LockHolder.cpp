// SPDX-License-Identifier: Apache-2.0
#include "io/detail/LockHolder.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/Text.hpp"
#include "io/Json.hpp"

namespace taper::detail {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// The boot of the kernel and the name space of process numbers; empty where the system has no
// /proc: such a place is never the same as another.
std::string this_place() {
  std::error_code error;
  const auto numbers = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  return error || boot.empty() ? "" : boot + " " + numbers.string();
}

// When a running process started, in clock ticks since the machine did (field 22 of
// /proc/PID/stat); nothing where there is none, or one that has ended and waits for its parent.
std::optional<std::int64_t> start_of(std::int64_t process) {
  const std::string line = first_line("/proc/" + std::to_string(process) + "/stat");
  const auto name_end = line.rfind(')');  // names may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  std::int64_t started = 0;
  fields >> state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> started;
  if (!fields || state == "Z" || state == "X") return std::nullopt;
  return started;
}

}  // namespace

LockHolder this_process() {
  const char* job = std::getenv("SLURM_JOB_ID");
  const std::int64_t process = ::getpid();
  return {
      host_name(), this_place(), process, start_of(process).value_or(0), job == nullptr ? "" : job,
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
  return start_of(holder.process) == holder.started;
}

std::string describe(const std::optional<LockHolder>& holder) {
  if (!holder) return "a process that has not said its name";
  return "process " + std::to_string(holder->process) + " on " + holder->host + " since " +
         holder->since + (holder->slurm_job.empty() ? "" : ", Slurm job " + holder->slurm_job);
}

}  // namespace taper::detail
