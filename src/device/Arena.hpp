// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/ArenaMemory.hpp"

namespace taper {

// When an item of the memory plan is in use: always, or in one of the phases that the plan hands
// out. Two phases are never at work at the same time on a rank, so their items share addresses.
enum class MemoryPhase : int { kAlways = 0 };

// What one rank will hold, item by item, known before anything is allocated.
class MemoryPlan {
 public:
  struct Item {
    std::string name;
    MemoryPhase phase;
    std::int64_t bytes;
    MemoryKind kind = MemoryKind::kModel;
  };

  // The phase of that name, which the first call makes. Whoever plans the memory of a rank gives
  // each model the phases that it works in.
  MemoryPhase phase(const std::string& name);
  int phases() const { return static_cast<int>(phases_.size()); }

  // Adds an item; items of the same name and phase are added up.
  void add(const std::string& name, MemoryPhase phase, std::int64_t bytes,
           MemoryKind kind = MemoryKind::kModel);

  const std::vector<Item>& items() const { return items_; }
  std::int64_t bytes(MemoryPhase phase) const;
  // The same of one kind.
  std::int64_t bytes(MemoryPhase phase, MemoryKind kind) const;
  std::int64_t total(MemoryKind kind) const;
  // What is needed at the same time: always + the largest of the other phases.
  std::int64_t total() const;
  // A table for people: item, phase, size, and the total.
  std::string table() const;

 private:
  std::vector<std::string> phases_{"always"};  // by id
  std::vector<Item> items_;
};

// Which model that is trained an item belongs to.
struct MemoryOwner {
  std::string model = {};                    // stands in the plan; empty: the policy
  MemoryPhase phase = MemoryPhase::kAlways;  // of what is needed only while it is at work

  // The name of an item.
  std::string item(const std::string& what) const {
    return model.empty() ? what : model + " " + what;
  }
};

// The memory of one rank in one piece. Each item of the plan is a region at a fixed address; take()
// hands out parts of it.
class Arena {
 public:
  explicit Arena(const MemoryPlan& plan);

  // The next `bytes` of the item's region, aligned to 64 bytes and zeroed at start. Throws Error
  // if the plan had less.
  void* take(const std::string& name, MemoryPhase phase, std::int64_t bytes);

  template <class T>
  T* take(const std::string& name, MemoryPhase phase, std::int64_t count) {
    return static_cast<T*>(take(name, phase, static_cast<std::int64_t>(count * sizeof(T))));
  }

  // Has the system provide all of the memory now, so that no step pays for first touches. If it
  // cannot, that happens at the first touch.
  void populate() { memory_.populate(); }

  std::int64_t total() const { return memory_.bytes() + (staging_ ? staging_->bytes() : 0); }

 private:
  struct Region {
    std::string name;
    MemoryPhase phase;
    char* base;
    std::int64_t begin, end, next;
  };

  template <class IsHere>
  void place(const MemoryPlan& plan, char* base, const IsHere& is_here);

  ArenaMemory memory_;
  std::optional<ArenaMemory> staging_;  // if it is memory of its own
  std::vector<Region> regions_;
};

// Bytes that an allocation of `bytes` takes in a region.
constexpr std::int64_t arena_bytes(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace taper
