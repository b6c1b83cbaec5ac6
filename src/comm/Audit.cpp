// SPDX-License-Identifier: Apache-2.0
#include "comm/Audit.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "base/Error.hpp"
#include "comm/Progress.hpp"
#include "comm/mpi/Transport.hpp"

namespace taper::detail {
namespace {

struct AuditRecord {
  std::uint64_t number = 0;
  std::int64_t count = 0;
  std::int64_t root = 0;
  char name[40] = {};

  friend bool operator==(const AuditRecord& a, const AuditRecord& b) {
    return a.number == b.number && a.count == b.count && a.root == b.root &&
           std::strcmp(a.name, b.name) == 0;
  }
};

std::string to_text(const AuditRecord& record) {
  std::ostringstream text;
  text << record.name << " number " << record.number;
  if (record.count >= 0) text << " of " << record.count << " elements";
  if (record.root >= 0) text << " from root " << record.root;
  return text.str();
}

}  // namespace

void check_same_collective(const Group& group, const char* name, std::uint64_t number,
                           std::int64_t count, int root) {
  AuditRecord mine{number, count, root, {}};
  std::strncpy(mine.name, name, sizeof(mine.name) - 1);
  std::vector<AuditRecord> all(static_cast<std::size_t>(group.size()));
  const std::vector<std::int64_t> bytes(all.size(), sizeof(AuditRecord));
  mpi::all_gather(group, reinterpret_cast<std::byte*>(all.data()),
                  reinterpret_cast<const std::byte*>(&mine), bytes);

  // Compared with what most ranks do, so that the text names the odd one out.
  const auto votes = [&](const AuditRecord& r) { return std::count(all.begin(), all.end(), r); };
  const AuditRecord& usual = *std::max_element(
      all.begin(), all.end(),
      [&](const AuditRecord& a, const AuditRecord& b) { return votes(a) < votes(b); });
  std::ostringstream odd;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == usual) continue;
    odd << "; rank " << group.world_ranks()[i] << " is in " << to_text(all[i]);
  }
  TAPER_INSIST(odd.str().empty(), "ranks of a group of " << group.size()
                                                         << " are in different collectives: "
                                                         << to_text(usual) << odd.str());
}

CollectiveScope::CollectiveScope(const Group& group, const char* name,
                                 [[maybe_unused]] std::int64_t count, [[maybe_unused]] int root)
    : progress_(group.progress()) {
  const auto number = group.next_number();
  if (progress_ != nullptr) progress_->enter_collective(name, number, group.size());
  if (progress_ != nullptr && progress_->take_stray_fault()) mpi::barrier(group);
#ifdef TAPER_AUDIT
  check_same_collective(group, name, number, count, root);
#endif
}

CollectiveScope::~CollectiveScope() {
  if (progress_ != nullptr) progress_->leave_collective();
}

}  // namespace taper::detail
