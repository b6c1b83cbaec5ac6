// SPDX-License-Identifier: Apache-2.0
//
// The text of a PTX module as data: what is declared, and the statements of each function in their
// order. Names are not resolved yet.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace taper::gpuemu {

// What is wrong with a program, or with what runs it. Ends the process (see runtime/Report.hpp).
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam, kConst };

// kind: b (bits), u, s, f (IEEE), p (predicate), h (bf16), x (anything else, e.g. bf16x2).
struct Type {
  char kind = 'b';
  int bits = 32;
  int bytes() const { return bits / 8; }
};

// One of PTX's type suffixes, without its dot, e.g. "u32"; false for other words.
bool read_type(std::string_view word, Type& type);

// `.shared .align 16 .b8 tile[4096];`, also of parameters.
struct Variable {
  Space space = Space::kGlobal;
  std::string name;
  Type type;
  int align = 1;
  std::int64_t bytes = 0;
  bool is_open = false;              // `name[]`: of the size that the launch says
  std::vector<std::string> initial;  // values in order, empty if there are none
};

struct Statement {
  enum class Kind : std::uint8_t {
    kInstruction,
    kRegisters,
    kVariable,
    kLabel,
    kOpen,
    kClose,
    kTargets
  };
  Kind kind = Kind::kInstruction;
  int line = 0;
  std::string text;   // of an instruction, for reports
  std::string guard;  // name of the predicate, "" for none
  bool is_guard_negated = false;
  std::vector<std::string> opcode;    // parts between dots: {"ld", "global", "f32"}
  std::vector<std::string> operands;  // of an instruction; names of registers or of targets
  Type type;                          // of registers
  Variable variable;
  std::string name;  // of a label or of a table of targets
};

struct Function {
  std::string name;
  bool is_entry = false;
  std::vector<Variable> parameters, results;
  std::vector<Statement> body;
};

struct PtxModule {
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

// Throws Fault with the line for text that is no PTX as nvcc writes it.
PtxModule parse_ptx(std::string_view text);

std::string_view trimmed(std::string_view text);
// Parts between separators outside brackets and braces, trimmed.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace taper::gpuemu
