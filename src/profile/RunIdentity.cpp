// SPDX-License-Identifier: Apache-2.0
#include "profile/RunIdentity.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/Error.hpp"
#include "base/TextFile.hpp"
#include "base/Version.hpp"
#include "comm/Collectives.hpp"
#include "instance/ModelOptions.hpp"
#include "kernels/attention.hpp"
#include "session/Startup.hpp"

namespace taper {
namespace {

// The value of the first "key : value" line of /proc/cpuinfo; empty if there is none.
std::string cpu_info(const std::string& key) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    const auto value = line.find_first_not_of(" \t", colon + 1);
    return colon == std::string::npos || value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

Facts model_facts(const ModelFiles& files, WeightType type, const Exec& exec) {
  const ModelConfig& c = files.config;
  Facts facts{{"family", to_string(c.family)},
              {"vocab", std::to_string(c.vocab)},
              {"tied", c.tied ? "yes" : "no"},
              {"qkv_bias", c.qkv_bias ? "yes" : "no"},
              {"qk_norm", c.qk_norm ? "yes" : "no"},
              {"dtype", type == WeightType::kBf16 ? "bf16" : "f32"},
              {"kv_dtype", kv_type(exec) == KvType::kBf16 ? "bf16" : "f32"}};
  facts.merge(shape_facts(c));
  if (rounds_operands(exec.arithmetic))
    facts["arithmetic"] = to_string(exec.arithmetic);  // else there is no such fact
  return facts;
}

Facts machine_facts(const Ranks& ranks) {
  const RankPlace& mine = ranks.hosts.ranks[ranks.rank()];
  const auto nodes = ranks.hosts.node_of_rank();
  const char* cluster = std::getenv("SLURM_CLUSTER_NAME");
  Facts facts{{"cpu", cpu_info("model name")},
              {"cores", std::to_string(mine.host_cores)},
              {"pinned", mine.is_pinned() ? "yes" : "no"},
              {"ranks_per_node", std::to_string(std::count(nodes.begin(), nodes.end(), nodes[0]))}};
  facts.merge(job_facts(ranks));
  if (cluster != nullptr) facts["cluster"] = cluster;
  if (!mine.gpu.empty()) facts["gpu"] = mine.gpu_name();
  return facts;
}

Facts transport_facts(const Ranks& ranks) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const std::string library = mpi_library();
  Facts facts = transport_settings(environment, library);
  facts["library"] = library;
  if (ranks.world().connects_devices()) facts["gpus"] = "NCCL";
  facts["waiting"] = ranks.world().wait() == WaitMode::kYield ? "yields" : "blocks";
  return facts;
}

// The highest clock that the system names, which does not move with load as the current one does.
Facts clock_facts() {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
  const std::string highest = first_line(folder + "cpuinfo_max_freq");  // kHz
  const std::string current = cpu_info("cpu MHz");
  Facts facts;
  if (!highest.empty())
    facts["max_mhz"] = std::to_string(std::atol(highest.c_str()) / 1000);
  else if (!current.empty())
    facts["mhz"] = std::to_string(std::lround(std::atof(current.c_str()) / 100) * 100);
  if (const std::string governor = first_line(folder + "scaling_governor"); !governor.empty())
    facts["governor"] = governor;
  return facts;
}

}  // namespace

Facts shape_facts(const ModelConfig& c) {
  return {
      {"layers", std::to_string(c.layers)},     {"hidden", std::to_string(c.hidden)},
      {"heads", std::to_string(c.heads)},       {"kv_heads", std::to_string(c.kv_heads)},
      {"head_dim", std::to_string(c.head_dim)}, {"intermediate", std::to_string(c.intermediate)}};
}

bool is_harmless_setting(std::string_view name) {
  // What is written where, which ranks may share cores, and the host that mpiexec tells each rank.
  constexpr std::string_view kWords[] = {"LOG", "DEBUG",   "WARN",  "STATS",
                                         "VFS", "VERBOSE", "rmaps", "INTERFACE_HOSTNAME"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

Facts transport_settings(const std::vector<std::string>& environment, const std::string& library) {
  const bool is_open_mpi = library.starts_with("Open MPI");
  const std::string_view prefixes[] = {"UCX_", "FI_", "NCCL_",
                                       is_open_mpi ? "OMPI_MCA_" : "MPIR_CVAR_"};
  Facts facts;
  for (const std::string& entry : environment) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (equals == std::string::npos ||
        std::none_of(std::begin(prefixes), std::end(prefixes), begins) || is_harmless_setting(name))
      continue;
    facts[name] = entry.substr(equals + 1);
  }
  return facts;
}

std::string to_lines(const ProfileIdentity& identity) {
  std::string lines;
  for (const IdentityPart& part : kIdentityParts)
    for (const auto& [name, value] : identity.*part.facts)
      lines += std::string(part.name) + '\t' + name + '\t' + value + '\n';
  return lines;
}

ProfileIdentity identity_from_lines(const std::string& lines) {
  ProfileIdentity identity;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    const auto part =
        std::find_if(kIdentityParts.begin(), kIdentityParts.end(),
                     [&](const IdentityPart& p) { return line.substr(0, first) == p.name; });
    TAPER_VALIDATE(
        second != std::string::npos && part != kIdentityParts.end(),
        "'" << line << "' is not a fact of a profile (part, name and value are expected)");
    (identity.*part->facts)[line.substr(first + 1, second - first - 1)] = line.substr(second + 1);
  }
  return identity;
}

ProfileIdentity gather_identity(const ModelFiles& files, WeightType type, const Ranks& ranks) {
  ProfileIdentity identity;
  if (ranks.rank() == 0) {
    const BuildInfo build = build_info();
    identity.model = model_facts(files, type, ranks.exec);
    identity.machine = machine_facts(ranks);
    identity.transport = transport_facts(ranks);
    identity.build = {{"version", build.version},
                      {"git", build.git_hash},
                      {"compiler", build.compiler},
                      {"type", build.build_type}};
    identity.clock = clock_facts();
  }
  return identity_from_lines(broadcast_string(ranks.world(), to_lines(identity), 0));
}

}  // namespace taper
