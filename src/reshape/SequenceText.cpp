// SPDX-License-Identifier: Apache-2.0
#include "reshape/SequenceText.hpp"

#include "reshape/detail/Bytes.hpp"

namespace taper {

void append_sequence(std::string& bytes, const Sequence& s) {
  detail::ByteWriter out(bytes);
  out.value(s.ordinal);
  for (const int v :
       {s.sample, s.samples, s.prompt_length, s.max_new_tokens, s.computed, s.preemptions})
    out.value(v);
  out.list(s.lengths);
  out.list(s.tokens);
  out.list(s.log_probs);
  out.list(s.kept_mass);
  out.list(s.spans);
}

std::vector<Sequence> read_sequences(const std::string& bytes) {
  std::vector<Sequence> sequences;
  for (detail::ByteReader in(bytes); !in.done();) {
    Sequence s;
    s.ordinal = in.value<std::int64_t>();
    for (int* const v :
         {&s.sample, &s.samples, &s.prompt_length, &s.max_new_tokens, &s.computed, &s.preemptions})
      *v = in.value<int>();
    s.lengths = in.list<std::int32_t>();
    s.tokens = in.list<std::int32_t>();
    s.log_probs = in.list<float>();
    s.kept_mass = in.list<float>();
    s.spans = in.list<ProducedBy>();
    sequences.push_back(std::move(s));
  }
  return sequences;
}

}  // namespace taper
