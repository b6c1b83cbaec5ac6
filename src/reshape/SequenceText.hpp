// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/Sequence.hpp"

namespace taper {

// The host state of a sequence as it travels between ranks of one build: all but its blocks.
void append_sequence(std::string& bytes, const Sequence& sequence);

// The bytes that append_sequence writes of a sequence of so many tokens, each with a log-prob and a
// kept mass, that two layouts have produced: what a change of layout must expect.
std::int64_t sequence_bytes(std::int64_t tokens);

// Reads what append_sequence wrote, one after the other. Throws Error if bytes are missing.
std::vector<Sequence> read_sequences(const std::string& bytes);

}  // namespace taper
