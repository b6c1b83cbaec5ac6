// SPDX-License-Identifier: Apache-2.0
#include "session/Ranks.hpp"

#include <cstdint>
#include <exception>
#include <filesystem>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#if defined(TAPER_CUDA)
#include "comm/nccl/Communicator.hpp"
#endif
#include "device/Runtime.hpp"
#include "kernels/Instructions.hpp"
#include "session/LayoutChecks.hpp"
#include "session/MemoryDomains.hpp"

namespace taper {

Ranks::Ranks(MPI_Comm comm, int size, const std::vector<int>& tp_degrees, Progress& shared_progress)
    : progress(shared_progress),
      chain(chain_with(size, tp_degrees)),
      groups(GroupCache::for_chain(comm, chain, GroupOptions{WaitMode::kAuto, &shared_progress})),
      hosts(gather_host_map(world(), find_place())) {
  find_memory_domains(world(), hosts);
}

Ranks::Ranks(const Ranks& parent, const DivisorChain& chain, GroupCache groups, HostMap hosts)
    : progress(parent.progress),
      chain(chain),
      groups(std::move(groups)),
      exec(parent.exec),
      hosts(std::move(hosts)) {}

Ranks Ranks::block(int first, int size, const std::vector<int>& tp_degrees) const {
  const DivisorChain its_chain = chain_with(size, tp_degrees);
  Group its_world = Group::block(world().comm(), first, size, world().options());
  GroupCache its_groups = GroupCache::for_chain(std::move(its_world), its_chain);
#if defined(TAPER_CUDA)
  if (world().connects_devices()) {
    auto devices = world().devices()->split(size > 1 ? first : nccl::Communicator::kNone,
                                            rank() - first, size);
    // The world has told why sums have no windows.
    if (size > 1) (void)its_groups.connect_devices(std::move(devices));
  }
#endif
  const auto begin = hosts.ranks.begin() + first;
  return Ranks(*this, its_chain, std::move(its_groups), HostMap{{begin, begin + size}});
}

#if defined(TAPER_CUDA)
std::string Ranks::connect_devices() {
  if (size() == 1) return "";
  if (!hosts.sharing_gpus().empty())
    return "data between ranks pass through the host (some share a GPU)";
  if (const std::string problem = nccl::problem(world()); !problem.empty())
    return "data between GPUs pass through the host, which is slow, because NCCL cannot be used (" +
           problem + ")";
  const std::string problem = groups.connect_devices(nccl::Communicator::create(world()));
  return "data between GPUs: NCCL " + nccl::version() +
         (problem.empty() ? ""
                          : "; small sums go through it, too, which is slower, because one kernel "
                            "cannot make them (" +
                                problem + ")");
}
#endif

std::string detail::bytes_from_rank_0(const Ranks& ranks,
                                      const std::function<std::string()>& make) {
  std::string text;
  std::vector<std::int32_t> code{0};
  if (ranks.rank() == 0) try {
      text = make();
    } catch (const Error& error) {
      text = error.what();
      code = {static_cast<std::int32_t>(error.code())};
    } catch (const std::filesystem::filesystem_error& error) {
      text = describe(error);
      code = {static_cast<std::int32_t>(ExitCode::kBadInput)};
    } catch (const std::exception& error) {
      text = describe(error);
      code = {static_cast<std::int32_t>(ExitCode::kFailure)};
    }
  broadcast(ranks.world(), code, 0);
  text = broadcast_string(ranks.world(), text, 0);
  if (code.front() != 0) throw Error(static_cast<ExitCode>(code.front()), text);
  return text;
}

std::map<std::string, std::string> job_facts(const Ranks& ranks) {
  return {{"ranks", std::to_string(ranks.size())},
          {"ranks_per_host", std::to_string(ranks.ranks_on_host())},
          {"threads_per_rank", std::to_string(host_threads())}};
}

std::map<std::string, std::string> run_facts(const Ranks& ranks) {
  auto facts = job_facts(ranks);
  facts["instructions"] = to_string(host_instructions().widest);
  const RankPlace& mine = ranks.hosts.ranks[ranks.rank()];
  if (!mine.gpu.empty()) {
    facts["gpu"] = mine.gpu_name();
    facts["gpu_capability"] = mine.gpu_capability;
  }
  return facts;
}

void require_equal(const Ranks& ranks, const std::string& what, const std::string& text) {
  std::vector<std::uint64_t> hashes(ranks.size());
  all_gather(ranks.world(), hashes, std::vector<std::uint64_t>{fnv1a(text)});
  for (int r = 1; r < ranks.size(); ++r)
    TAPER_VALIDATE(
        hashes[r] == hashes[0],
        what << ": ranks 0 and " << r
             << " have read different contents (all ranks must have the same); check that all "
                "hosts see the same files");
}

}  // namespace taper
