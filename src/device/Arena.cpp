// SPDX-License-Identifier: Apache-2.0
#include "device/Arena.hpp"

#include <algorithm>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// The bytes of the items that `is_meant` accepts.
template <class IsMeant>
std::int64_t sum_of(const MemoryPlan& plan, const IsMeant& is_meant) {
  std::int64_t sum = 0;
  for (const MemoryPlan::Item& item : plan.items())
    if (is_meant(item)) sum += item.bytes;
  return sum;
}

}  // namespace

MemoryPhase MemoryPlan::phase(const std::string& name) {
  const auto at = std::find(phases_.begin(), phases_.end(), name);
  const auto id = static_cast<MemoryPhase>(at - phases_.begin());
  if (at == phases_.end()) phases_.push_back(name);
  return id;
}

void MemoryPlan::add(const std::string& name, MemoryPhase phase, std::int64_t bytes,
                     MemoryKind kind, const MemoryShare& share) {
  TAPER_EXPECT(static_cast<int>(phase) < phases());
  TAPER_EXPECT(!share.is_shared() || phase == MemoryPhase::kAlways);
  for (Item& item : items_) {
    if (item.name == name && item.phase == phase) {
      TAPER_INSIST(
          item.share == share && item.kind == kind,
          "memory item '"
              << name
              << "' is planned twice, shared with different ranks or as memory of another kind");
      item.bytes += arena_bytes(bytes);
      return;
    }
  }
  items_.push_back({name, phase, arena_bytes(bytes), kind, share});
}

std::int64_t MemoryPlan::bytes(MemoryPhase phase) const {
  return sum_of(*this, [&](const Item& item) { return item.phase == phase && item.is_counted(); });
}

std::int64_t MemoryPlan::bytes(MemoryPhase phase, MemoryKind kind) const {
  return sum_of(*this, [&](const Item& item) {
    return item.phase == phase && item.kind == kind && item.is_counted();
  });
}

std::int64_t MemoryPlan::unshared() const {
  return total() -
         sum_of(*this, [](const Item& item) { return item.share.is_shared() && item.share.makes; });
}

std::int64_t MemoryPlan::uncounted() const {
  return sum_of(*this, [](const Item& item) { return !item.is_counted(); });
}

namespace {

// What is always there, and the largest of the other phases.
template <class Bytes>
std::int64_t most_at_once(int phases, const Bytes& bytes) {
  std::int64_t largest = 0;
  for (int p = 1; p < phases; ++p) largest = std::max(largest, bytes(static_cast<MemoryPhase>(p)));
  return bytes(MemoryPhase::kAlways) + largest;
}

}  // namespace

std::int64_t MemoryPlan::total() const {
  if (ArenaMemory::kHasStaging) return total(MemoryKind::kModel) + total(MemoryKind::kStaging);
  return most_at_once(phases(), [this](MemoryPhase p) { return bytes(p); });
}

std::int64_t MemoryPlan::total(MemoryKind kind) const {
  return most_at_once(phases(), [&](MemoryPhase p) { return bytes(p, kind); });
}

std::string MemoryPlan::table() const {
  std::string text;
  std::size_t width = 28, phase_width = 8;
  const auto label = [](const Item& item) {
    return item.share.is_shared()
               ? item.name + ", shared by " + std::to_string(item.share.ranks) + " ranks"
               : item.name;
  };
  for (const Item& item : items_) width = std::max(width, label(item).size());
  for (const std::string& phase : phases_) phase_width = std::max(phase_width, phase.size());
  const auto add = [&](const std::string& name, const std::string& phase, std::int64_t bytes) {
    text += format_text("  %-*s %-*s %12s\n", static_cast<int>(width), name.c_str(),
                        static_cast<int>(phase_width), phase.c_str(),
                        format_bytes(static_cast<double>(bytes)).c_str());
  };
  for (const Item& item : items_)
    add(label(item), phases_[static_cast<int>(item.phase)], item.bytes);
  add("total", "", total());
  if (const std::int64_t others = uncounted(); others > 0)
    add("shared, counted by another rank", "", others);
  if (const std::int64_t host = total(MemoryKind::kStaging); ArenaMemory::kHasStaging && host > 0)
    add("of it in memory of the host", "", host);
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

Arena::Arena(const MemoryPlan& plan, Copies shared)
    : memory_(ArenaMemory::kHasStaging ? plan.total(MemoryKind::kModel) : plan.unshared()),
      shared_(std::move(shared)) {
  for (const auto& item : plan.items()) {
    if (!item.share.is_shared()) continue;
    const auto copy = shared_.find(item.copy());
    TAPER_INSIST(copy != shared_.end() && copy->second.bytes() == item.bytes,
                 "memory item '" << item.name << "' is shared, but its copy is missing or of "
                                 << "another size");
    regions_.push_back({item.name, item.phase, copy->second.base(), 0, item.bytes, 0});
  }
  if (ArenaMemory::kHasStaging) {
    staging_.emplace(plan.total(MemoryKind::kStaging), MemoryKind::kStaging);
    place(plan, memory_.base(), [](const auto& item) { return item.kind == MemoryKind::kModel; });
    place(plan, staging_->base(),
          [](const auto& item) { return item.kind == MemoryKind::kStaging; });
  } else {
    place(plan, memory_.base(), [](const auto& item) { return !item.share.is_shared(); });
  }
}

void Arena::populate() {
  memory_.populate();
  for (auto& [name, copy] : shared_) copy.populate();
}

// The items that `is_here` accepts, one after the other; those of a phase after those of always.
template <class IsHere>
void Arena::place(const MemoryPlan& plan, char* base, const IsHere& is_here) {
  std::int64_t always = 0;
  for (const auto& item : plan.items())
    if (is_here(item) && item.phase == MemoryPhase::kAlways) always += item.bytes;
  std::vector<std::int64_t> next(plan.phases(), always);
  next[static_cast<int>(MemoryPhase::kAlways)] = 0;
  for (const auto& item : plan.items()) {
    if (!is_here(item)) continue;
    std::int64_t& at = next[static_cast<int>(item.phase)];
    regions_.push_back({item.name, item.phase, base, at, at + item.bytes, at});
    at += item.bytes;
  }
}

void* Arena::take(const std::string& name, MemoryPhase phase, std::int64_t bytes) {
  for (Region& region : regions_) {
    if (region.name != name || region.phase != phase) continue;
    TAPER_INSIST(region.next + arena_bytes(bytes) <= region.end,
                 "memory item '" << name << "' has " << region.end - region.next
                                 << " bytes left of " << region.end - region.begin << ", " << bytes
                                 << " are asked for: the plan and its use disagree");
    void* taken = region.base + region.next;
    region.next += arena_bytes(bytes);
    return taken;
  }
  TAPER_INSIST(false, "memory item '" << name << "' is not in the plan");
  return nullptr;
}

}  // namespace taper
