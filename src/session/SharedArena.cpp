// SPDX-License-Identifier: Apache-2.0
#include "session/SharedArena.hpp"

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "comm/GatherValues.hpp"

namespace taper {
namespace {

// A copy that a rank has made, for those that map it.
struct Offer {
  std::string copy;
  SharedMemory::Name name;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.copy, self.name);
  }
};

}  // namespace

std::unique_ptr<Arena> make_arena(const Ranks& ranks, const MemoryPlan& plan) {
  if (!ranks.hosts.has_shared_memory()) return std::make_unique<Arena>(plan);
  Arena::Copies copies;
  std::vector<Offer> offers;
  std::set<std::string> wanted, offered;
  for (const MemoryPlan::Item& item : plan.items()) {
    if (!item.share.is_shared()) continue;
    if (item.share.makes) {
      const auto made = copies.emplace(item.copy(), SharedMemory(item.bytes)).first;
      offers.push_back({item.copy(), made->second.name()});
    } else {
      wanted.insert(item.copy());
    }
  }
  for (const auto& its_offers : all_gather_values(ranks.world(), offers))
    for (const Offer& offer : its_offers) {
      TAPER_INSIST(offered.insert(offer.copy).second,
                   "two ranks have made the copy '" << offer.copy << "'");
      if (wanted.contains(offer.copy)) copies.emplace(offer.copy, SharedMemory(offer.name));
    }
  auto arena = std::make_unique<Arena>(plan, std::move(copies));
  barrier(ranks.world());  // what a rank made is there until others have it
  return arena;
}

}  // namespace taper
