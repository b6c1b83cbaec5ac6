// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/Sequence.hpp"

namespace taper {

// The host state of a sequence as it travels between ranks of one build: all but its blocks.
void append_sequence(std::string& bytes, const Sequence& sequence);

// Reads what append_sequence wrote, one after the other. Throws Error where bytes are missing.
std::vector<Sequence> read_sequences(const std::string& bytes);

}  // namespace taper
