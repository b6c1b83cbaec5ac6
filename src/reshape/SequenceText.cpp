// SPDX-License-Identifier: Apache-2.0
#include "reshape/SequenceText.hpp"

#include <utility>

#include "base/Bytes.hpp"

namespace taper {

void append_sequence(std::string& bytes, const Sequence& s) {
  ByteWriter out(bytes);
  out.value(s.id);
  for (const int v : {s.samples, s.prompt_length, s.max_new_tokens, s.computed}) out.value(v);
  out.list(s.pinned);
  out.list(s.tokens);
  out.list(s.log_probs);
  out.list(s.kept_mass);
  out.list(s.spans);
}

std::int64_t sequence_bytes(std::int64_t tokens) {
  constexpr std::int64_t kNumbers = sizeof(Sequence::id) + 4 * sizeof(int);
  constexpr std::int64_t kCounts = 5 * sizeof(std::int64_t), kSpans = 2 * sizeof(ProducedBy);
  constexpr std::int64_t kToken = sizeof(std::int32_t) + 2 * sizeof(float);
  return kNumbers + kCounts + kSpans + kToken * tokens;
}

std::vector<Sequence> read_sequences(const std::string& bytes) {
  std::vector<Sequence> sequences;
  for (ByteReader in(bytes); !in.done();) {
    Sequence s;
    in.value(s.id);
    for (int* const v : {&s.samples, &s.prompt_length, &s.max_new_tokens, &s.computed})
      in.value(*v);
    in.list(s.pinned);
    in.list(s.tokens);
    in.list(s.log_probs);
    in.list(s.kept_mass);
    in.list(s.spans);
    sequences.push_back(std::move(s));
  }
  return sequences;
}

}  // namespace taper
