// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shard/RankGrid.hpp"

namespace taper {

// A tensor-parallel group of a layout: ranks [first, first + tp), one replica of the model.
struct LayoutGroup {
  int first = 0;
  int tp = 1;

  int end() const { return first + tp; }
  bool has(int rank) const { return rank >= first && rank < end(); }
  bool contains(const LayoutGroup& inner) const {
    return first <= inner.first && inner.end() <= end();
  }
  friend bool operator==(const LayoutGroup&, const LayoutGroup&) = default;
};

// How the generation ranks form replicas: groups that cover all ranks, in rank order. Uniform (a
// rank grid), or of different degrees: nodes of the tree that a divisor chain spans over the ranks
// ("buddy groups"), so each group starts at a multiple of its degree.
class Layout {
 public:
  // One group per degree, in rank order. Throws Error if the degrees do not cover the chain's
  // ranks, are not in the chain, or a group does not start at a multiple of its degree.
  Layout(const std::vector<int>& degrees, const DivisorChain& chain);
  static Layout uniform(int tp, const DivisorChain& chain);

  const std::vector<LayoutGroup>& groups() const { return groups_; }
  int ranks() const { return groups_.back().end(); }
  int replicas() const { return static_cast<int>(groups_.size()); }
  // Index of the group that holds `rank`.
  int replica_of(int rank) const;
  bool is_uniform() const;

  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<LayoutGroup> groups_;
};

// Which groups of `from` are not in `to`, so that their sequences must go elsewhere.
std::vector<bool> changed_groups(const Layout& from, const Layout& to);

// "2x4" if uniform (tensor parallel 2, data parallel 4), else the degrees in rank order:
// "4+2+2".
std::string to_string(const Layout& layout);
// The degrees of the groups in rank order, of both forms, whatever ranks there are; nothing if
// the text has neither form. Groups are at most a million.
std::optional<std::vector<int>> group_degrees(const std::string& text);
// Both forms, for messages: "TPxDP, e.g. 2x4 ..., or the degrees ...".
std::string layout_forms();
// Why no divisor chain of so many ranks has groups of these (positive) degrees, in rank order, and
// what to do: "(for 3 ranks; there are 4); start ..."; empty if one has.
std::string layout_problem(const std::vector<int>& degrees, int ranks);
// Reads both forms. Throws Error with the expected form.
Layout parse_layout(const std::string& text, const DivisorChain& chain);

}  // namespace taper
