// SPDX-License-Identifier: Apache-2.0
//
// The way from an opcode to its handler.
#include <set>

#include "gpuemu/machine/Lanes.hpp"

namespace taper::gpuemu {
namespace {

const HandlerTable& handlers() {
  static const HandlerTable table = [] {
    HandlerTable t;
    add_integer_handlers(t);
    add_float_handlers(t);
    add_compare_handlers(t);
    return t;
  }();
  return table;
}

// Words that do not change what an arithmetic instruction does here: rounding to nearest is the
// default, and shifts clamp.
std::string key(const std::vector<std::string>& opcode) {
  static const std::set<std::string> silent{"rn", "clamp"};
  std::string text;
  for (const std::string& word : opcode) {
    if (silent.count(word) != 0) continue;
    if (!text.empty()) text += '.';
    text += word;
  }
  return text;
}

void nothing(Warp&, const Instruction&) {}

bool decode_flow(Instruction& i) {
  const std::string& op = i.opcode[0];
  if (op == "bra") {
    i.flow = Flow::kBranch;
  } else if (op == "brx") {
    i.flow = Flow::kTable;
  } else if (op == "ret") {
    i.flow = Flow::kReturn;
  } else if (op == "exit") {
    i.flow = Flow::kExit;
  } else if (op == "call") {
    i.flow = Flow::kCall;
  } else if (op == "trap" || op == "brkpt") {
    i.handler = [](Warp& w, const Instruction&) { w.fail("the kernel trapped"); };
  } else if (op == "nanosleep") {
    i.handler = [](Warp& w, const Instruction&) { w.yield(); };
  } else if (op == "membar" || op == "fence" || op == "prefetch" || op == "prefetchu" ||
             op == "discard" || op == "applypriority" || op == "griddepcontrol" ||
             op == "pmevent" || op == "setmaxnreg") {
    // Blocks run one after the other, and memory is coherent.
    i.handler = nothing;
  } else {
    return false;
  }
  return true;
}

}  // namespace

void decode(Instruction& i) {
  if (decode_warpgroup(i) || decode_flow(i) || decode_memory(i) || decode_warp(i) ||
      decode_copies(i) || decode_tensor(i) || decode_convert(i) || decode_move(i)) {
    return;
  }
  const auto found = handlers().find(key(i.opcode));
  if (found == handlers().end())
    throw Fault("instruction " + key(i.opcode) + " is not supported: " + i.text);
  i.handler = found->second;
}

}  // namespace taper::gpuemu
