// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/ArenaMemory.hpp"
#include "device/SharedMemory.hpp"

namespace taper {

// When an item of the memory plan is in use: always, or in one of the phases that the plan hands
// out. Two phases are never at work at the same time on a rank, so their items share addresses.
enum class MemoryPhase : int { kAlways = 0 };

// That several ranks keep one copy of an item, in memory that they all map.
struct MemoryShare {
  std::string of = {};  // tells the copy apart from those that other ranks keep of that name
  int ranks = 1;        // that keep it
  bool makes = true;    // this rank makes the copy, and its plan counts it

  bool is_shared() const { return ranks > 1; }
  friend bool operator==(const MemoryShare&, const MemoryShare&) = default;
};

// What one rank will hold, item by item, known before anything is allocated.
class MemoryPlan {
 public:
  struct Item {
    std::string name;
    MemoryPhase phase;
    std::int64_t bytes;
    MemoryKind kind = MemoryKind::kModel;
    MemoryShare share = {};

    // Whether this rank counts it: it has it for itself, or makes the copy that others map.
    bool is_counted() const { return !share.is_shared() || share.makes; }
    // Names the copy on a host; only if it is shared.
    std::string copy() const { return share.of + ": " + name; }
  };

  // The phase of that name, which the first call makes. Whoever plans the memory of a rank gives
  // each model the phases that it works in.
  MemoryPhase phase(const std::string& name);
  int phases() const { return static_cast<int>(phases_.size()); }

  // Adds an item; items of the same name and phase are added up, and are shared with the same
  // ranks. Only what is always in use can be shared.
  void add(const std::string& name, MemoryPhase phase, std::int64_t bytes,
           MemoryKind kind = MemoryKind::kModel, const MemoryShare& share = {});

  const std::vector<Item>& items() const { return items_; }
  std::int64_t bytes(MemoryPhase phase) const;
  // The same of one kind.
  std::int64_t bytes(MemoryPhase phase, MemoryKind kind) const;
  std::int64_t total(MemoryKind kind) const;
  // What is needed at the same time: always + the largest of the other phases. Of what ranks share,
  // what this one makes: the totals of the ranks of a host add up to what they need together.
  std::int64_t total() const;
  // Of the total, what is not shared.
  std::int64_t unshared() const;
  // What this rank maps, but another one makes and counts.
  std::int64_t uncounted() const;
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

// The memory of one rank in one piece, and what it shares with others. Each item of the plan is a
// region at a fixed address; take() hands out parts of it.
class Arena {
 public:
  using Copies = std::map<std::string, SharedMemory>;  // by Item::copy()

  // `shared`: of each item that the plan shares (session/SharedArena.hpp).
  explicit Arena(const MemoryPlan& plan, Copies shared = {});

  // The next `bytes` of the item's region, aligned to 64 bytes and zeroed at start. Ranks that
  // share an item take the same parts of it, in the same order. Throws Error if the plan had less.
  void* take(const std::string& name, MemoryPhase phase, std::int64_t bytes);

  template <class T>
  T* take(const std::string& name, MemoryPhase phase, std::int64_t count) {
    return static_cast<T*>(take(name, phase, static_cast<std::int64_t>(count * sizeof(T))));
  }

  // Has the system provide all of the memory now, so that no step pays for first touches. If it
  // cannot, that happens at the first touch.
  void populate();

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
  Copies shared_;
  std::vector<Region> regions_;
};

// Bytes that an allocation of `bytes` takes in a region.
constexpr std::int64_t arena_bytes(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace taper
