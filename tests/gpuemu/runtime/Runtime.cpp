// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/runtime/Runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taper::gpuemu {

Settings settings_of_environment() {
  Settings s;
  if (const char* seed = std::getenv("GPUEMU_SEED"))
    s.seed = static_cast<std::uint32_t>(std::atoi(seed));
  if (const char* arch = std::getenv("GPUEMU_ARCH")) s.architecture = std::atoi(arch);
  if (const char* list = std::getenv("GPUEMU_CHECKS")) {
    const std::string text = std::string(",") + list + ",";
    s.checks.written = text.find(",written,") != std::string::npos;
    s.checks.races = text.find(",races,") != std::string::npos;
    s.checks_streams = text.find(",streams,") != std::string::npos;
    s.checks_host = text.find(",host,") != std::string::npos;
  }
  if (const char* memory = std::getenv("GPUEMU_MEMORY_MB"))
    s.memory_bytes = std::strtoull(memory, nullptr, 0) << 20;
  if (const char* devices = std::getenv("GPUEMU_DEVICES")) s.devices = std::atoi(devices);
  if (const char* file = std::getenv("GPUEMU_STATISTICS")) s.statistics = file;
  return s;
}

bool has_peer_fault(const std::string& kind) {
  const char *fault = std::getenv("GPUEMU_PEER_FAULT"), *rank = std::getenv("PMI_RANK");
  return fault != nullptr && fault == (rank == nullptr ? "0" : std::string(rank)) + ":" + kind;
}

void report_fault(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "gpuemu: fault: %s\n", what.c_str());
  std::fflush(stderr);
  std::_Exit(kFaultCode);
}

Runtime& Runtime::get() {
  // Never destroyed: threads may call to the very end. Statistics are written at exit.
  static Runtime* runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime()
    : settings(settings_of_environment()),
      queue(machine.random),
      pool(settings.memory_bytes, settings.checks_host) {
  machine.checks = settings.checks;
  machine.architecture = settings.architecture;
  machine.random.seed(settings.seed);
  if (settings.checks_streams) {
    machine.is_ordered = [](std::uint32_t before, std::uint32_t) {
      return get().queue.is_ordered(before);
    };
  }
  if (settings.statistics.empty()) return;
  std::atexit([] {
    Runtime& r = get();
    std::FILE* file = std::fopen(r.settings.statistics.c_str(), "a");
    if (file == nullptr) return;
    for (const auto& [name, s] : r.statistics) {
      std::fprintf(
          file,
          "{\"kernel\": \"%s\", \"launches\": %llu, \"instructions\": %llu, \"bytes_read\": %llu, "
          "\"bytes_written\": %llu, \"products\": %llu}\n",
          name.c_str(), static_cast<unsigned long long>(s.launches),
          static_cast<unsigned long long>(s.instructions),
          static_cast<unsigned long long>(s.bytes_read),
          static_cast<unsigned long long>(s.bytes_written),
          static_cast<unsigned long long>(s.products));
    }
    std::fclose(file);
  });
}

Program& Runtime::program_of(Binary& binary) {
  if (binary.program == nullptr) {
    if (binary.texts.empty()) {
      throw Fault("the executable has no PTX (compile with -arch=sm_NN, or code=compute_NN)");
    }
    // The newest architecture comes last.
    binary.program = std::make_unique<Program>(parse_ptx(binary.texts.back()));
    for (const auto& [name, v] : binary.program->variables()) {
      Allocation& a = machine.memory.add(v.address, static_cast<std::size_t>(v.bytes),
                                         Allocation::Kind::kVariable);
      a.checked.mark_written(0, a.bytes);
    }
  }
  return *binary.program;
}

std::uint8_t* Runtime::variable(const void* symbol, std::size_t& bytes) {
  const auto found = variables.find(symbol);
  if (found == variables.end()) return nullptr;
  const Program::Variable& v = program_of(*found->second.binary).variables().at(found->second.name);
  bytes = static_cast<std::size_t>(v.bytes);
  return v.address;
}

const Routine& Runtime::kernel_of(const void* function, const Program** program) {
  const auto found = kernels.find(function);
  if (found == kernels.end()) throw Fault("launch of a function that is no kernel");
  Program& p = program_of(*found->second.binary);
  if (program != nullptr) *program = &p;
  return p.routine(found->second.name);
}

void Runtime::note_allocation(const char* what) {
  if (forbids_allocations)
    throw Fault(std::string(what) +
                " between cudaProfilerStart and cudaProfilerStop, where nothing may be allocated");
}

void* Runtime::allocate(std::size_t bytes, Allocation::Kind kind) {
  const bool is_device = kind == Allocation::Kind::kDevice;
  const std::size_t room = (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256;
  void* p = is_device ? pool.allocate(room) : std::aligned_alloc(256, room);
  if (p == nullptr) return nullptr;
  // NaN in every type, where it costs little.
  const DevicePool::Opened opened(pool);
  if (room <= std::size_t{64} << 20) std::memset(p, 0xff, room);
  Allocation& a = machine.memory.add(p, bytes, kind);
  // What the host writes into its own memory is not seen here.
  if (!is_device) a.checked.mark_written(0, bytes);
  if (is_device) allocated_bytes += bytes;
  peak_bytes = std::max(peak_bytes, allocated_bytes);
  return p;
}

bool Runtime::release(void* p) {
  Allocation* a = machine.memory.find(reinterpret_cast<std::uintptr_t>(p), 0);
  if (a == nullptr || a->start != reinterpret_cast<std::uintptr_t>(p)) return false;
  queue.finish_all();
  const bool is_device = a->kind == Allocation::Kind::kDevice;
  if (is_device) allocated_bytes -= a->bytes;
  machine.memory.remove(p);
  is_device ? pool.free(p) : std::free(p);
  return true;
}

std::shared_ptr<const HostMemory> Runtime::keep(HostMemory&& memory) {
  auto kept = std::make_shared<const HostMemory>(std::move(memory));
  std::erase_if(awaited_, [](const auto& known) { return known.expired(); });
  awaited_.push_back(kept);
  return kept;
}

bool Runtime::is_awaited(const void* p, std::size_t bytes) {
  return std::any_of(awaited_.begin(), awaited_.end(), [&](const auto& known) {
    const auto memory = known.lock();
    return memory != nullptr && memory->overlaps(p, bytes);
  });
}

// The pinned memory of the host that pointers among the parameters lead to, at most a MiB each.
// Which operations have written there is known with the other checks only.
std::shared_ptr<const HostMemory> Runtime::read_host_memory(
    const std::vector<std::uint8_t>& parameters) {
  if (!settings.checks_host || !settings.checks_streams || !settings.checks.races) return nullptr;
  constexpr std::size_t kMost = std::size_t{1} << 20;
  HostMemory host;
  host.pending = queue.oldest_pending();
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= parameters.size();
       at += sizeof(std::uintptr_t)) {
    std::uintptr_t address = 0;
    std::memcpy(&address, parameters.data() + at, sizeof address);
    const Allocation* a = machine.memory.find(address, 1);
    if (a == nullptr || a->kind != Allocation::Kind::kPinned) continue;
    const auto* from = reinterpret_cast<const std::uint8_t*>(address);
    const std::size_t bytes = std::min(kMost, a->bytes - (address - a->start));
    host.pieces[address].assign(from, from + bytes);
  }
  return host.pieces.empty() ? nullptr : keep(std::move(host));
}

cudaError_t Runtime::launch(const void* function, Dim grid, Dim block, void** arguments,
                            std::size_t shared, Stream* stream, bool is_cooperative) {
  Launch l;
  l.is_cooperative = is_cooperative;
  l.kernel = &kernel_of(function, &l.program);
  l.grid = grid;
  l.block = block;
  l.dynamic_shared = static_cast<std::uint32_t>(shared);
  if (block.count() == 0 || block.count() > 1024 || grid.count() == 0 || grid.y > 65535 ||
      grid.z > 65535) {
    return fail(cudaErrorInvalidConfiguration);
  }
  if (shared > kMostSharedBytes) return fail(cudaErrorInvalidValue);
  if (is_cooperative && grid.count() > kMostBlocksTogether)
    return fail(cudaErrorCooperativeLaunchTooLarge);
  if (breaks_capture(stream)) return fail(cudaErrorStreamCaptureImplicit);
  l.parameters.resize(static_cast<std::size_t>(l.kernel->bank_bytes) + 16);
  for (std::size_t k = 0; k < l.kernel->parameters.size(); ++k) {
    const Parameter& p = l.kernel->parameters[k];
    std::memcpy(l.parameters.data() + p.offset, arguments[k], static_cast<std::size_t>(p.bytes));
  }
  Work work{l.kernel->name, [this, l] {
              return [this, l, host = read_host_memory(l.parameters)](std::uint32_t number) {
                Launch now = l;
                now.number = number;
                now.host = host;
                run(now);
              };
            }};
  // It may wait for another process, which must not wait until this one asks for results.
  work.runs_at_once = is_cooperative;
  queue.add(*stream, std::move(work));
  return cudaSuccess;
}

void Runtime::run(const Launch& launch) {
  const DevicePool::Opened opened(pool);
  const Statistics before = machine.statistics;
  machine.run(launch);
  const Statistics& after = machine.statistics;
  KernelStatistics& s = statistics[launch.kernel->name];
  ++s.launches;
  s.instructions += after.instructions - before.instructions;
  s.bytes_read += after.bytes_read - before.bytes_read;
  s.bytes_written += after.bytes_written - before.bytes_written;
  s.products += after.products - before.products;
}

void Runtime::use_bytes(void* at, std::size_t bytes, bool is_write, std::uint32_t number,
                        const char* what) {
  Allocation* a = machine.memory.find(reinterpret_cast<std::uintptr_t>(at), bytes);
  if (a == nullptr) {
    if (machine.memory.find(reinterpret_cast<std::uintptr_t>(at), 0) != nullptr) {
      throw Fault(std::string(what) + " of " + std::to_string(bytes) +
                  " bytes goes beyond its allocation");
    }
    return;  // the host's own memory
  }
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(at) - a->start;
  if (!settings.checks_streams || !settings.checks.races) return;
  Touches* t = a->checked.touches(offset);
  Moment now;
  now.launch = number;
  const auto check = [&](const Moment& before) {
    if (before.launch != 0 && before.launch != number && !queue.is_ordered(before.launch)) {
      throw Fault(std::string(what) + (is_write ? " writes" : " reads") +
                  " memory that an operation of another stream uses, without waiting for it");
    }
  };
  std::uint32_t last_write = 0, last_read = 0;
  for (std::size_t k = 0; k < (bytes + 1) / 2; ++k, ++t) {
    if (t->write.launch != last_write) check(t->write);
    last_write = t->write.launch;
    if (is_write) {
      if (t->read.launch != last_read) check(t->read);
      last_read = t->read.launch;
      t->write = now;
    } else {
      t->read = now;
    }
  }
}

void Runtime::run_copy(void* to, const void* from, std::size_t bytes, std::uint32_t number) {
  use_bytes(const_cast<void*>(from), bytes, false, number, "a copy");
  use_bytes(to, bytes, true, number, "a copy");
  std::memmove(to, from, bytes);
  Allocation* target = machine.memory.find(reinterpret_cast<std::uintptr_t>(to), bytes);
  if (target == nullptr || target->kind == Allocation::Kind::kPinned) return;
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(to) - target->start;
  Allocation* source = machine.memory.find(reinterpret_cast<std::uintptr_t>(from), bytes);
  if (source != nullptr) {
    target->checked.copy_marks(offset, source->checked,
                               reinterpret_cast<std::uintptr_t>(from) - source->start, bytes);
  } else {
    target->checked.mark_written(offset, bytes);
  }
}

// Pinned host memory is read when the copy runs, as on a device; what the program writes there in
// between is a fault. Other host memory may be reused at once, since a driver stages it.
cudaError_t Runtime::copy(void* to, const void* from, std::size_t bytes, Stream* stream,
                          const char* name) {
  if (bytes == 0) return cudaSuccess;
  if (breaks_capture(stream)) return fail(cudaErrorStreamCaptureImplicit);
  const auto find = [&](const void* p) {
    return machine.memory.find(reinterpret_cast<std::uintptr_t>(p), 0);
  };
  const Allocation* source = find(from);
  const Allocation* target = find(to);
  const bool is_pageable = source == nullptr || target == nullptr;
  if (stream->capture != nullptr && is_pageable) {
    stream->is_capture_broken = true;
    return fail(cudaErrorStreamCaptureUnsupported);
  }
  const bool from_host = source == nullptr || source->kind == Allocation::Kind::kPinned;
  const bool is_staged = source == nullptr;
  const bool to_pinned = target != nullptr && target->kind == Allocation::Kind::kPinned;
  const bool is_checked = settings.checks_streams && settings.checks.races;
  queue.add(*stream,
            {name, [this, to, from, bytes, from_host, is_staged, to_pinned, is_checked] {
               std::shared_ptr<const HostMemory> before;
               if (from_host) {
                 HostMemory host;
                 host.pending = queue.oldest_pending();
                 const auto* const begin = static_cast<const std::uint8_t*>(from);
                 host.pieces[reinterpret_cast<std::uintptr_t>(from)].assign(begin, begin + bytes);
                 before = keep(std::move(host));
               }
               // Undefined until the copy has run.
               if (to_pinned && !from_host && !is_awaited(to, bytes)) std::memset(to, 0xff, bytes);
               return [this, to, from, bytes, is_staged, is_checked, before](std::uint32_t number) {
                 const DevicePool::Opened opened(pool);
                 if (is_staged) {
                   run_copy(to, before->pieces.begin()->second.data(), bytes, number);
                   return;
                 }
                 Allocation* source =
                     machine.memory.find(reinterpret_cast<std::uintptr_t>(from), bytes);
                 if (before != nullptr && is_checked && source != nullptr &&
                     before->is_changed(*source, from, bytes))
                   throw Fault("host memory was changed while a copy from it was pending");
                 run_copy(to, from, bytes, number);
               };
             }});
  if (target == nullptr && stream->capture == nullptr)
    queue.finish(*stream);  // to pageable memory: synchronous
  return cudaSuccess;
}

cudaError_t Runtime::fill(void* to, int value, std::size_t bytes, Stream* stream) {
  if (bytes == 0) return cudaSuccess;
  if (breaks_capture(stream)) return fail(cudaErrorStreamCaptureImplicit);
  queue.add(
      *stream,
      {"memset", [this, to, value, bytes] {
         return [this, to, value, bytes](std::uint32_t number) {
           const DevicePool::Opened opened(pool);
           use_bytes(to, bytes, true, number, "a memset");
           std::memset(to, value, bytes);
           if (Allocation* a = machine.memory.find(reinterpret_cast<std::uintptr_t>(to), bytes)) {
             a->checked.mark_written(reinterpret_cast<std::uintptr_t>(to) - a->start, bytes);
           }
         };
       }});
  return cudaSuccess;
}

}  // namespace taper::gpuemu
