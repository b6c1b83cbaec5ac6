// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "gpuemu/machine/Machine.hpp"

namespace taper::gpuemu {
namespace {

std::int64_t aligned(std::int64_t value, std::int64_t to) {
  return to <= 1 ? value : (value + to - 1) / to * to;
}

const std::unordered_map<std::string, Special>& specials() {
  static const std::unordered_map<std::string, Special> names{
      {"%tid.x", Special::kThreadX},        {"%tid.y", Special::kThreadY},
      {"%tid.z", Special::kThreadZ},        {"%ntid.x", Special::kBlockSizeX},
      {"%ntid.y", Special::kBlockSizeY},    {"%ntid.z", Special::kBlockSizeZ},
      {"%ctaid.x", Special::kBlockX},       {"%ctaid.y", Special::kBlockY},
      {"%ctaid.z", Special::kBlockZ},       {"%nctaid.x", Special::kGridX},
      {"%nctaid.y", Special::kGridY},       {"%nctaid.z", Special::kGridZ},
      {"%laneid", Special::kLane},          {"%warpid", Special::kWarp},
      {"%nwarpid", Special::kWarps},        {"%lanemask_eq", Special::kMaskEqual},
      {"%lanemask_le", Special::kMaskUpTo}, {"%lanemask_lt", Special::kMaskBelow},
      {"%lanemask_ge", Special::kMaskFrom}, {"%lanemask_gt", Special::kMaskAbove},
      {"%clock", Special::kClock},          {"%clock64", Special::kClock},
      {"%globaltimer", Special::kClock},    {"%smid", Special::kProcessor},
      {"%nsmid", Special::kProcessors},     {"%dynamic_smem_size", Special::kDynamicShared},
      {"%cluster_ctarank", Special::kZero}, {"%cluster_ctaid.x", Special::kZero}};
  return names;
}

std::uint64_t number(std::string text) {
  if (!text.empty() && text.back() == 'U') text.pop_back();
  if (text.rfind("0f", 0) == 0 || text.rfind("0F", 0) == 0 || text.rfind("0d", 0) == 0 ||
      text.rfind("0D", 0) == 0) {
    return std::strtoull(text.c_str() + 2, nullptr, 16);
  }
  if (text[0] == '-') return static_cast<std::uint64_t>(std::strtoll(text.c_str(), nullptr, 0));
  return std::strtoull(text.c_str(), nullptr, 0);
}

bool is_number(const std::string& text) {
  return std::isdigit(static_cast<unsigned char>(text[0])) ||
         (text[0] == '-' && text.size() > 1 && std::isdigit(static_cast<unsigned char>(text[1])));
}

}  // namespace

// Resolves the names of one function.
class Decoder {
 public:
  Decoder(Program& program, const Function& function, Routine& routine)
      : program_(program), function_(function), r_(routine) {}

  void run() {
    r_.name = function_.name;
    place_parameters();
    scopes_.emplace_back();
    for (const Statement& s : function_.body) statement(s);
    Instruction end;
    end.opcode = {"ret"};
    end.text = "(end of function)";
    decode(end);
    r_.code.push_back(std::move(end));
    for (const auto& [index, label] : branches_) r_.code[index].target = at(labels_, label);
    for (const auto& [index, name] : tables_of_) {
      for (const std::string& label : at(tables_, name))
        r_.code[index].table.push_back(at(labels_, label));
    }
    r_.frame_bytes = static_cast<std::uint32_t>(aligned(r_.frame_bytes, 64));
  }

 private:
  template <class Map>
  const typename Map::mapped_type& at(const Map& map, const std::string& name) const {
    const auto found = map.find(name);
    if (found == map.end()) throw Fault("PTX of " + function_.name + ": no " + name);
    return found->second;
  }

  // A kernel's parameters lie in one bank for all threads; those of calls belong to a thread, and
  // are addressed from the end of the bank on.
  void place_parameters() {
    for (const Variable& p : function_.parameters) {
      std::int64_t& top = function_.is_entry ? r_.bank_bytes : r_.lane_parameter_bytes;
      top = aligned(top, p.align);
      names_[p.name] = top;
      r_.parameters.push_back({top, p.bytes});
      top += p.bytes;
    }
    for (const Variable& p : function_.results) {
      r_.results.push_back({place_lane_parameter(p), p.bytes});
      names_[p.name] = r_.results.back().offset;
    }
  }

  std::int64_t place_lane_parameter(const Variable& p) {
    r_.lane_parameter_bytes = aligned(r_.lane_parameter_bytes, 16);
    const std::int64_t place = r_.bank_bytes + r_.lane_parameter_bytes;
    r_.lane_parameter_bytes += p.bytes;
    return place;
  }

  void statement(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::kOpen:
        scopes_.emplace_back();
        break;
      case Statement::Kind::kClose:
        scopes_.pop_back();
        break;
      case Statement::Kind::kLabel:
        labels_[s.name] = static_cast<int>(r_.code.size());
        break;
      case Statement::Kind::kTargets:
        tables_[s.name] = s.operands;
        break;
      case Statement::Kind::kRegisters:
        registers(s);
        break;
      case Statement::Kind::kVariable:
        variable(s.variable);
        break;
      case Statement::Kind::kInstruction:
        instruction(s);
        break;
    }
  }

  std::uint32_t take_lanes(int bytes) {
    const std::uint32_t offset = r_.frame_bytes;
    r_.frame_bytes += static_cast<std::uint32_t>(kLanes * bytes);
    return offset;
  }

  // `%r<12>` are %r0 to %r11.
  void registers(const Statement& s) {
    for (const std::string& name : s.operands) {
      const std::size_t many = name.find('<');
      const int n = many == std::string::npos ? 1 : std::atoi(name.c_str() + many + 1);
      const std::string stem = name.substr(0, many);
      for (int k = 0; k < n; ++k) {
        Operand o;
        if (s.type.kind == 'p') {
          o.kind = Operand::Kind::kPredicate;
          o.offset = static_cast<std::uint32_t>(r_.predicates++);
        } else {
          o.kind = Operand::Kind::kRegister;
          o.bytes = s.type.bits == 64 ? 8 : 4;
          o.offset = take_lanes(o.bytes);
        }
        scopes_.back()[many == std::string::npos ? stem : stem + std::to_string(k)] = o;
      }
    }
  }

  void variable(const Variable& v) {
    switch (v.space) {
      case Space::kShared:
        names_[v.name] = program_.place_shared(v);
        break;
      case Space::kParam:
        names_[v.name] = place_lane_parameter(v);
        break;
      case Space::kLocal:
        r_.local_bytes = aligned(r_.local_bytes, v.align);
        names_[v.name] = r_.local_bytes;
        r_.local_bytes += v.bytes;
        break;
      default:
        program_.declare(v);
    }
  }

  const Operand* find_register(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return &found->second;
    }
    return nullptr;
  }

  bool find_symbol(const std::string& name, std::int64_t& value) {
    if (const auto own = names_.find(name); own != names_.end()) {
      value = own->second;
    } else if (const auto shared = program_.shared_.find(name); shared != program_.shared_.end()) {
      value = shared->second;
    } else if (const auto global = program_.variables_.find(name);
               global != program_.variables_.end()) {
      value = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(global->second.address));
      return true;
    } else {
      return false;
    }
    if (value < 0) {
      r_.uses_dynamic_shared = true;
      value = kDynamicShared;
    }
    return true;
  }

  Operand constant(std::uint64_t value, int bytes) {
    Operand o;
    o.kind = Operand::Kind::kRegister;
    o.bytes = bytes;
    if (bytes == 4) value &= 0xffffffffu;
    const auto key = std::make_pair(value, bytes);
    const auto found = constants_.find(key);
    if (found != constants_.end()) {
      o.offset = found->second;
      return o;
    }
    o.offset = constants_[key] = take_lanes(bytes);
    r_.constants.push_back({o.offset, bytes, value});
    return o;
  }

  Operand special(const std::string& name, Special which) {
    Operand o;
    o.kind = Operand::Kind::kRegister;
    o.bytes = name == "%clock64" || name == "%globaltimer" ? 8 : 4;
    const auto found = special_lanes_.find(name);
    if (found != special_lanes_.end()) {
      o.offset = found->second;
    } else {
      o.offset = special_lanes_[name] = take_lanes(8);
      r_.specials.emplace_back(o.offset, which);
    }
    return o;
  }

  // `[%rd4+8]`, `[name]`, `[name+16]`.
  Operand address(const std::string& text) {
    Operand o;
    o.kind = Operand::Kind::kAddress;
    std::string base(trimmed(std::string_view(text).substr(1, text.find(']') - 1)));
    const std::size_t sign = base.find_last_of("+-");
    if (sign != std::string::npos && sign > 0) {
      const std::string offset = base.substr(base[sign] == '+' ? sign + 1 : sign);
      o.displacement = std::strtoll(offset.c_str(), nullptr, 0);
      base = std::string(trimmed(base.substr(0, sign)));
      if (!base.empty() && base.back() == '+') base.pop_back();
    }
    std::int64_t value = 0;
    if (const Operand* r = find_register(base)) {
      o.has_base = true;
      o.offset = r->offset;
      o.bytes = r->bytes;
    } else if (is_number(base)) {
      o.displacement += static_cast<std::int64_t>(number(base));
    } else if (find_symbol(base, value)) {
      o.displacement += value;
      o.name = base;
    } else {
      throw Fault("PTX of " + function_.name + ": unknown symbol " + base);
    }
    return o;
  }

  Operand operand(const std::string& text, int bytes) {
    Operand o;
    if (text.empty()) return o;
    if (text == "_") {
      o.kind = Operand::Kind::kSink;
    } else if (text[0] == '{' || text[0] == '(') {
      o.kind = Operand::Kind::kVector;
      for (const std::string& part :
           split(std::string_view(text).substr(1, text.size() - 2), ',')) {
        o.parts.push_back(operand(part, bytes));
      }
    } else if (text[0] == '[') {
      o = address(text);
    } else if (text[0] == '!') {
      o = operand(text.substr(1), bytes);
      o.is_negated = true;
    } else if (const Operand* r = find_register(text)) {
      o = *r;
    } else if (const auto s = specials().find(text); s != specials().end()) {
      o = special(text, s->second);
    } else if (text == "WARP_SZ") {
      o = constant(kLanes, 4);
    } else if (is_number(text)) {
      o = constant(number(text), bytes);
    } else if (std::int64_t value = 0; find_symbol(text, value)) {
      o = constant(static_cast<std::uint64_t>(value), bytes);
      o.name = text;
    } else {
      o.kind = Operand::Kind::kName;
      o.name = text;
    }
    return o;
  }

  // Bytes of the lanes of operand k; registers know their own, so that this is for immediates.
  static int bytes_of(const Instruction& i, std::size_t k) {
    const std::string& op = i.opcode[0];
    if ((op == "shl" || op == "shr") && k == 2) return 4;
    if (op == "bfe" && k > 1) return 4;
    if (i.has("wide")) return k == 1 || k == 2 ? 4 : 8;
    return i.type.bits == 64 ? 8 : 4;
  }

  void instruction(const Statement& s) {
    Instruction i;
    i.line = s.line;
    i.text = s.text;
    i.opcode = s.opcode;
    if (!s.guard.empty()) {
      const Operand* guard = find_register(s.guard);
      if (guard == nullptr) throw Fault("PTX of " + function_.name + ": no predicate " + s.guard);
      i.guard = static_cast<int>(guard->offset);
      i.is_guard_negated = s.is_guard_negated;
    }
    int types = 0;
    for (const std::string& word : i.opcode) {
      Type type;
      if (read_type(word, type) && types < 2) (types++ == 0 ? i.type : i.from) = type;
    }
    if (i.opcode[0] == "bra") {
      branches_.emplace_back(r_.code.size(), s.operands.at(0));
    } else if (i.opcode[0] == "brx") {
      i.operands = {operand(s.operands.at(0), 4)};
      tables_of_.emplace_back(r_.code.size(), s.operands.at(1));
    } else if (i.opcode[0] == "call") {
      call(s, i);
    } else {
      for (std::size_t k = 0; k < s.operands.size(); ++k) {
        const std::string& text = s.operands[k];
        const std::size_t bar = text.find('|');  // two results: the second goes to the end
        if (bar != std::string::npos) {
          i.operands.push_back(operand(std::string(trimmed(text.substr(0, bar))), bytes_of(i, k)));
          second_result_ = operand(std::string(trimmed(text.substr(bar + 1))), 4);
          continue;
        }
        i.operands.push_back(operand(text, bytes_of(i, k)));
      }
      if (second_result_.kind != Operand::Kind::kNone) {
        i.operands.push_back(second_result_);
        i.variant = 1;
        second_result_ = {};
      }
    }
    std::uint32_t* lanes[] = {&i.d, &i.a, &i.b, &i.c};
    for (std::size_t k = 0; k < i.operands.size() && k < 4; ++k) *lanes[k] = i.operands[k].offset;
    try {
      decode(i);
    } catch (const Fault& e) {
      throw Fault("PTX of " + function_.name + ", line " + std::to_string(i.line) + ": " +
                  e.what());
    }
    r_.code.push_back(std::move(i));
  }

  // `call (result), name, (arguments)`: results, then arguments, are offsets of parameters.
  void call(const Statement& s, Instruction& i) {
    Operand results, arguments, callee;
    for (const std::string& text : s.operands) {
      if (text[0] != '(') {
        if (callee.kind == Operand::Kind::kNone) callee = operand(text, 8);
        continue;
      }
      Operand& list = callee.kind == Operand::Kind::kNone ? results : arguments;
      for (const std::string& name :
           split(std::string_view(text).substr(1, text.size() - 2), ',')) {
        Operand place;
        if (!find_symbol(name, place.displacement))
          throw Fault("PTX of " + function_.name + ": no " + name);
        list.parts.push_back(place);
      }
    }
    if (callee.kind != Operand::Kind::kName)
      throw Fault("indirect calls are not supported: " + s.text);
    i.operands = {callee, results, arguments};
  }

  Program& program_;
  const Function& function_;
  Routine& r_;
  std::vector<std::unordered_map<std::string, Operand>> scopes_;
  std::unordered_map<std::string, std::int64_t> names_;
  std::unordered_map<std::string, int> labels_;
  std::unordered_map<std::string, std::vector<std::string>> tables_;
  std::vector<std::pair<std::size_t, std::string>> branches_, tables_of_;
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> constants_;
  std::unordered_map<std::string, std::uint32_t> special_lanes_;
  Operand second_result_;
};

bool Instruction::has(std::string_view word) const {
  for (const std::string& part : opcode) {
    if (part == word) return true;
  }
  return false;
}

Program::Program(const PtxModule& module) {
  for (const gpuemu::Variable& v : module.variables) declare(v);
  // Initial values may name variables that come later.
  for (const gpuemu::Variable& v : module.variables) {
    if (v.initial.empty()) continue;
    std::uint8_t* to = variables_.at(v.name).address;
    for (const std::string& text : v.initial) {
      std::uint64_t value = 0;
      if (is_number(text)) {
        value = number(text);
      } else {
        std::string name = text;
        if (name.rfind("generic(", 0) == 0) name = name.substr(8, name.size() - 9);
        const auto found = variables_.find(name);
        if (found != variables_.end())
          value = reinterpret_cast<std::uintptr_t>(found->second.address);
      }
      std::memcpy(to, &value, static_cast<std::size_t>(v.type.bytes()));
      to += v.type.bytes();
    }
  }
  for (const Function& f : module.functions) {
    auto routine = std::make_unique<Routine>();
    Decoder(*this, f, *routine).run();
    routines_[f.name] = std::move(routine);
  }
}

const Routine* Program::find(const std::string& name) const {
  const auto found = routines_.find(name);
  return found == routines_.end() ? nullptr : found->second.get();
}

const Routine& Program::routine(const std::string& name) const {
  const Routine* r = find(name);
  if (r == nullptr) throw Fault("no kernel or function " + name + " in the PTX");
  return *r;
}

void Program::declare(const gpuemu::Variable& v) {
  if (v.space == Space::kShared) {
    shared_[v.name] = place_shared(v);
    return;
  }
  if (variables_.count(v.name) != 0) return;
  storage_.push_back(std::make_unique<std::uint8_t[]>(static_cast<std::size_t>(v.bytes) + 256));
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(storage_.back().get());
  variables_[v.name] = {reinterpret_cast<std::uint8_t*>((start + 255) / 256 * 256), v.bytes};
}

// All shared variables of a module have places of their own; the open one comes after them.
std::int64_t Program::place_shared(const gpuemu::Variable& v) {
  if (v.is_open) return -1;
  shared_top_ = aligned(shared_top_, v.align);
  const std::int64_t place = shared_top_;
  shared_top_ += v.bytes;
  return place;
}

}  // namespace taper::gpuemu
