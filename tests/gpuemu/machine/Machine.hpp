// SPDX-License-Identifier: Apache-2.0
//
// A decoded program: routines of instructions whose operands are offsets into the registers of a
// warp. A register is an array of 32 lanes (4 bytes each, or 8); a predicate is a mask of lanes; an
// immediate value is a register that is filled once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpuemu/ptx/Ptx.hpp"

namespace taper::gpuemu {

constexpr int kLanes = 32;
using Mask = std::uint32_t;
constexpr Mask kAllLanes = ~Mask{0};

class Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&);

struct Operand {
  enum class Kind : std::uint8_t { kNone, kRegister, kPredicate, kAddress, kVector, kSink, kName };
  Kind kind = Kind::kNone;
  bool is_negated = false;   // of a predicate
  int bytes = 4;             // of a lane, 4 or 8
  std::uint32_t offset = 0;  // of lanes in the frame; number of the predicate
  bool has_base = false;     // of an address: offset and bytes are those of its register
  std::int64_t displacement = 0;
  std::vector<Operand> parts;  // of a vector
  std::string name;            // of a called function, or of a symbol
};

// What happens to the program counter.
enum class Flow : std::uint8_t { kNext, kBranch, kTable, kReturn, kExit, kBarrier, kMeet, kCall };

struct Instruction {
  Handler handler = nullptr;
  Flow flow = Flow::kNext;
  bool is_guard_negated = false;
  int guard = -1;                            // a predicate
  std::uint32_t d = 0, a = 0, b = 0, c = 0;  // lanes of the first four operands
  int target = -1;                           // of a branch
  int variant = 0;                           // what the family of instructions says of it
  int count = 1;                             // elements of a vector
  int members = -1;  // Flow::kMeet: the operand with the mask of lanes, -1: all
  Space space = Space::kGeneric;
  Type type, from;  // first and second type suffix
  std::vector<Operand> operands;
  std::vector<int> table;  // targets of brx
  std::vector<std::string> opcode;
  int line = 0;
  std::string text;

  bool has(std::string_view word) const;
};

enum class Special : std::uint8_t {
  kThreadX,
  kThreadY,
  kThreadZ,
  kBlockSizeX,
  kBlockSizeY,
  kBlockSizeZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kGridX,
  kGridY,
  kGridZ,
  kLane,
  kWarp,
  kWarps,
  kMaskEqual,
  kMaskUpTo,
  kMaskBelow,
  kMaskFrom,
  kMaskAbove,
  kClock,
  kProcessor,
  kProcessors,
  kDynamicShared,
  kZero
};

struct Parameter {
  std::int64_t offset = 0, bytes = 0;
};

struct Routine {
  std::string name;
  std::vector<Instruction> code;
  std::uint32_t frame_bytes = 0;
  int predicates = 0;
  std::int64_t local_bytes = 0;           // of a thread
  std::int64_t bank_bytes = 0;            // parameters of a kernel, common to all threads
  std::int64_t lane_parameter_bytes = 0;  // parameters of calls, of a thread
  std::vector<Parameter> parameters, results;
  struct Constant {
    std::uint32_t offset;
    int bytes;
    std::uint64_t value;
  };
  std::vector<Constant> constants;
  std::vector<std::pair<std::uint32_t, Special>> specials;
  bool uses_dynamic_shared = false;
};

// Address in shared memory at which its dynamic part begins; static variables lie below.
constexpr std::int64_t kDynamicShared = 0x100000;

// A module, loaded: its routines, and its variables at addresses of their own.
class Program {
 public:
  explicit Program(const PtxModule& module);

  // Throws Fault for a name that the module lacks.
  const Routine& routine(const std::string& name) const;
  const Routine* find(const std::string& name) const;
  struct Variable {
    std::uint8_t* address = nullptr;
    std::int64_t bytes = 0;
  };
  const std::map<std::string, Variable>& variables() const { return variables_; }
  std::int64_t static_shared_bytes() const { return shared_top_; }

 private:
  friend class Decoder;
  void declare(const gpuemu::Variable& variable);
  std::int64_t place_shared(const gpuemu::Variable& variable);

  std::map<std::string, std::unique_ptr<Routine>> routines_;
  std::map<std::string, Variable> variables_;
  std::map<std::string, std::int64_t> shared_;  // -1: dynamic
  std::vector<std::unique_ptr<std::uint8_t[]>> storage_;
  std::int64_t shared_top_ = 0;
};

// Handler and fields of an instruction from its opcode (Decode.cpp). Throws Fault for one that is
// not known.
void decode(Instruction& instruction);

}  // namespace taper::gpuemu
