// SPDX-License-Identifier: Apache-2.0
#include "device/Arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <memory>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// Of the mapping that an arena stands in.
std::size_t mapped_bytes(std::int64_t total) {
  return static_cast<std::size_t>(std::max<std::int64_t>(total, 1) + Arena::kLargePage);
}

}  // namespace

MemoryPhase MemoryPlan::phase(const std::string& name) {
  const auto at = std::find(phases_.begin(), phases_.end(), name);
  const auto id = static_cast<MemoryPhase>(at - phases_.begin());
  if (at == phases_.end()) phases_.push_back(name);
  return id;
}

void MemoryPlan::add(const std::string& name, MemoryPhase phase, std::int64_t bytes) {
  TAPER_EXPECT(static_cast<int>(phase) < phases());
  for (Item& item : items_) {
    if (item.name == name && item.phase == phase) {
      item.bytes += arena_bytes(bytes);
      return;
    }
  }
  items_.push_back({name, phase, arena_bytes(bytes)});
}

std::int64_t MemoryPlan::bytes(MemoryPhase phase) const {
  std::int64_t sum = 0;
  for (const Item& item : items_)
    if (item.phase == phase) sum += item.bytes;
  return sum;
}

std::int64_t MemoryPlan::total() const {
  std::int64_t largest = 0;
  for (int p = 1; p < phases(); ++p)
    largest = std::max(largest, bytes(static_cast<MemoryPhase>(p)));
  return bytes(MemoryPhase::kAlways) + largest;
}

std::string MemoryPlan::table() const {
  std::string text;
  int width = 28;
  for (const Item& item : items_) width = std::max(width, static_cast<int>(item.name.size()));
  const auto add = [&](const std::string& name, const std::string& phase, std::int64_t bytes) {
    text += format_text("  %-*s %-9s %12s\n", width, name.c_str(), phase.c_str(),
                        format_bytes(static_cast<double>(bytes)).c_str());
  };
  for (const Item& item : items_) add(item.name, phases_[static_cast<int>(item.phase)], item.bytes);
  add("total", "", total());
  std::vector<std::string> sharing;
  for (int p = 1; p < phases(); ++p)
    if (bytes(static_cast<MemoryPhase>(p)) > 0) sharing.push_back(phases_[p]);
  if (sharing.size() < 2) return text;
  const std::string last = sharing.back();
  sharing.pop_back();
  return text + "  (" + join(sharing) + " and " + last +
         " use the same memory, one after the other: " +
         (sharing.size() == 1 ? "the larger of both counts)\n" : "the largest of them counts)\n");
}

Arena::Arena(const MemoryPlan& plan) : total_(plan.total()) {
  std::size_t bytes = mapped_bytes(total_);
  mapping_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TAPER_VALIDATE(mapping_ != MAP_FAILED,
                 "no memory for " << format_bytes(static_cast<double>(total_))
                                  << " on this rank (see the memory plan above); use more ranks, a "
                                  << "smaller batch or activation checkpointing");
  void* aligned = mapping_;
  base_ = static_cast<char*>(std::align(static_cast<std::size_t>(kLargePage),
                                        static_cast<std::size_t>(std::max<std::int64_t>(total_, 1)),
                                        aligned, bytes));
  // Only a wish: small pages give the same results more slowly.
  if (total_ >= kLargePage) ::madvise(base_, static_cast<std::size_t>(total_), MADV_HUGEPAGE);
  // Where the next item of each phase begins.
  std::vector<std::int64_t> next(plan.phases(), plan.bytes(MemoryPhase::kAlways));
  next[static_cast<int>(MemoryPhase::kAlways)] = 0;
  for (const auto& item : plan.items()) {
    std::int64_t& at = next[static_cast<int>(item.phase)];
    regions_.push_back({item.name, item.phase, at, at + item.bytes, at});
    at += item.bytes;
  }
}

Arena::~Arena() {
  ::munmap(mapping_, mapped_bytes(total_));
}

void Arena::populate() {
#ifdef MADV_POPULATE_WRITE
  ::madvise(base_, static_cast<std::size_t>(total_), MADV_POPULATE_WRITE);
#endif
}

void* Arena::take(const std::string& name, MemoryPhase phase, std::int64_t bytes) {
  for (Region& region : regions_) {
    if (region.name != name || region.phase != phase) continue;
    TAPER_INSIST(region.next + arena_bytes(bytes) <= region.end,
                 "memory item '" << name << "' has " << region.end - region.next
                                 << " bytes left of " << region.end - region.begin << ", " << bytes
                                 << " are asked for: the plan and its use disagree");
    void* taken = base_ + region.next;
    region.next += arena_bytes(bytes);
    return taken;
  }
  TAPER_INSIST(false, "memory item '" << name << "' is not in the plan");
  return nullptr;
}

}  // namespace taper
