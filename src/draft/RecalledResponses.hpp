// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/Response.hpp"
#include "engine/Sequence.hpp"

namespace taper {

// Responses, whole or not, of a generation that was interrupted and is done again: with the same
// weights and random numbers, each becomes what it was. Nothing is believed: a sequence that goes
// another way is forgotten.
class RecalledResponses {
 public:
  // tokens: the prompt, then the response as far as it is known.
  void add(const ResponseId& id, std::vector<std::int32_t> tokens);
  void clear() { responses_.clear(); }
  bool empty() const { return responses_.empty(); }
  // The tokens that followed this sequence, `most` at most; none if that is not known. Valid until
  // the next call.
  std::span<const std::int32_t> after(const Sequence& sequence, int most);

 private:
  struct Recalled {
    std::vector<std::int32_t> tokens;
    std::size_t agreed = 0;  // so many are those of the sequence
  };
  std::map<ResponseId, Recalled> responses_;
};

}  // namespace taper
