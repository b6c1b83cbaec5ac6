// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for libnccl between emulated GPUs, for the calls that src/comm/nccl makes. Operations
// are carried out when they are queued, or a graph that they were captured into is launched, after
// what is on the stream before them: a program that queues them in different orders on different
// ranks hangs, as with NCCL.
//
//   GPUEMU_NCCL_FAULT=rank:number:kind   the operation of that number (from 1) of a rank fails:
//     error     its call returns an error
//     later     it is reported by ncclCommGetAsyncError, and the operation never ends
//     stuck     it never ends
//     unending  nor does ncclCommAbort
//     killed    the process dies
//     recorded  counts launches of recorded groups of operations: that one never ends
//     split     counts ncclCommSplit: the new communicator has a rank too many
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpuemu/nccl/Mailboxes.hpp"
#include "gpuemu/runtime/Recorded.hpp"

using taper::gpuemu::Mailboxes;

struct ncclComm {
  std::string name;
  std::unique_ptr<Mailboxes> mail;
  int splits = 0;
  int extra = 0;  // ranks that it claims to have beside those in `mail`
  std::atomic<ncclResult_t> state{ncclSuccess};
};

namespace {

// A message under way; received ones are kept on the host until all have come.
struct Message {
  ncclComm* comm;
  int peer;
  bool is_received;
  void* device;
  std::vector<char> bytes;
  cudaStream_t stream;
  std::size_t done = 0;
};

std::vector<Message> queued;
int depth = 0;  // of ncclGroupStart

struct Fault {
  int rank = -1, number = 0;
  std::string kind;
};
Fault fault_of_environment() {
  Fault f;
  char kind[16] = "";
  if (const char* text = std::getenv("GPUEMU_NCCL_FAULT"))
    std::sscanf(text, "%d:%d:%15s", &f.rank, &f.number, kind);
  f.kind = kind;
  return f;
}
const Fault fault = fault_of_environment();
int job_rank = -1;  // in the communicator that was made first

// Counts what the fault is about, and tells whether this one goes wrong. `kind`: of faults that
// strike it alone; empty: all others.
bool strikes(const char* kind) {
  static int number = 0;
  const bool is_special = fault.kind == "recorded" || fault.kind == "split";
  if (fault.rank != job_rank || (is_special ? fault.kind != kind : *kind != '\0')) return false;
  return ++number == fault.number;
}

[[noreturn]] void never_end() {
  for (;;) ::sleep(1);
}

// Counts an operation; an error if it is the one that goes wrong.
ncclResult_t begin(ncclComm* comm) {
  if (!strikes("")) return ncclSuccess;
  if (fault.kind == "error") return ncclRemoteError;
  if (fault.kind == "killed") std::raise(SIGKILL);
  if (fault.kind == "later") comm->state = ncclRemoteError;
  never_end();
}

std::size_t size_of(ncclDataType_t type) {
  if (type == ncclFloat) return 4;
  throw std::runtime_error("only floats are exchanged here");
}

template <class F>
ncclResult_t guarded(const F& f) {
  try {
    return f();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpuemu nccl: %s\n", error.what());
    return ncclInternalError;
  }
}

// An operation of a program, unless it is the one that goes wrong.
template <class F>
ncclResult_t operation(ncclComm* comm, const F& f) {
  const ncclResult_t wrong = begin(comm);
  return wrong != ncclSuccess ? wrong : guarded(f);
}

bool copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, stream) == cudaSuccess &&
         cudaStreamSynchronize(stream) == cudaSuccess;
}

// Moves all messages between the hosts, none waiting for another.
void move(std::vector<Message>& messages) {
  for (bool pending = true; pending;) {
    pending = false;
    bool moved = false;
    for (auto m = messages.begin(); m != messages.end(); ++m) {
      if (m->done == m->bytes.size()) continue;
      pending = true;
      // Messages of one kind between the same ranks go in the order in which they were queued.
      if (std::any_of(messages.begin(), m, [&](const Message& before) {
            return before.comm == m->comm && before.peer == m->peer &&
                   before.is_received == m->is_received && before.done < before.bytes.size();
          }))
        continue;
      const std::size_t left = m->bytes.size() - m->done;
      char* at = m->bytes.data() + m->done;
      const std::size_t now = m->is_received ? m->comm->mail->try_receive(m->peer, at, left)
                                             : m->comm->mail->try_send(m->peer, at, left);
      m->done += now;
      moved |= now > 0;
    }
    if (pending && !moved) ::sched_yield();
  }
}

// From the devices to the devices; copy(to, from, m) is a copy of the bytes of message m, and false
// if it fails.
template <class Copy>
bool carry(std::vector<Message>& messages, const Copy& copy) {
  for (Message& m : messages) {
    m.done = 0;
    if (!m.is_received && !copy(m.bytes.data(), m.device, m)) return false;
  }
  move(messages);
  return std::all_of(messages.begin(), messages.end(), [&](const Message& m) {
    return !m.is_received || copy(m.device, m.bytes.data(), m);
  });
}

// A group of messages in a graph.
void run_recorded(void* data) {
  if (strikes("recorded")) never_end();
  carry(*static_cast<std::vector<Message>*>(data),
        [](void* to, const void* from, const Message& m) {
          cudaGpuemuCopy(to, from, m.bytes.size());
          return true;
        });
}

// All messages are on one stream.
ncclResult_t exchange(std::vector<Message> messages) {
  if (messages.empty()) return ncclSuccess;
  cudaStream_t stream = messages.front().stream;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  if (status != cudaStreamCaptureStatusNone) {
    // Graphs are not followed: what they need stays to the end.
    static auto* recorded = new std::list<std::vector<Message>>;
    recorded->push_back(std::move(messages));
    cudaGpuemuRecord(stream, "NCCL", run_recorded, &recorded->back());
    return ncclSuccess;
  }
  const auto copy_now = [](void* to, const void* from, const Message& m) {
    const auto kind = m.is_received ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    return copy(to, from, m.bytes.size(), kind, m.stream);
  };
  return carry(messages, copy_now) ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t queue(Message message) {
  queued.push_back(std::move(message));
  return depth > 0 ? ncclSuccess : exchange(std::exchange(queued, {}));
}

// What the ranks of a communicator give, in rank order.
std::vector<char> gather(Mailboxes& mail, const void* mine, std::size_t size) {
  std::vector<char> all(size * static_cast<std::size_t>(mail.ranks()));
  for (int r = 0; r < mail.ranks(); ++r) {
    if (r == mail.rank()) continue;
    while (mail.try_send(r, static_cast<const char*>(mine), size) == 0) ::sched_yield();
  }
  for (int r = 0; r < mail.ranks(); ++r) {
    char* to = all.data() + size * static_cast<std::size_t>(r);
    if (r == mail.rank())
      std::memcpy(to, mine, size);
    else
      while (mail.try_receive(r, to, size) == 0) ::sched_yield();
  }
  return all;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : result == ncclRemoteError ? "remote error" : "error";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static int number = 0;
  std::memset(id, 0, sizeof *id);
  std::snprintf(reinterpret_cast<char*>(id), sizeof *id, "/gpuemu-nccl-%d-%d", ::getpid(),
                number++);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  if (job_rank < 0) job_rank = rank;
  return guarded([&] {
    auto made = std::make_unique<ncclComm>();
    made->name = reinterpret_cast<const char*>(&id);  // of ncclGetUniqueId
    made->mail = std::make_unique<Mailboxes>(made->name, ranks, rank);
    *comm = made.release();
    return ncclSuccess;
  });
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t*) {
  return guarded([&] {
    struct Choice {
      int color, key;
    };
    const Choice mine{color, key};
    const std::vector<char> bytes = gather(*comm->mail, &mine, sizeof mine);
    const auto* all = reinterpret_cast<const Choice*>(bytes.data());
    const std::string name =
        comm->name + "-" + std::to_string(comm->splits++) + "-" + std::to_string(color);
    *part = nullptr;
    if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
    int members = 0, before = 0;
    for (int r = 0; r < comm->mail->ranks(); ++r) {
      if (all[r].color != color) continue;
      ++members;
      before += all[r].key < key || (all[r].key == key && r < comm->mail->rank());
    }
    auto made = std::make_unique<ncclComm>();
    made->name = name;
    made->mail = std::make_unique<Mailboxes>(name, members, before);
    made->extra = strikes("split") ? 1 : 0;
    *part = made.release();
    return ncclSuccess;
  });
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* ranks) {
  *ranks = comm->mail->ranks() + comm->extra;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->mail->rank();
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
// What waits for others goes on waiting: the process is about to end.
ncclResult_t ncclCommAbort(ncclComm_t) {
  std::fprintf(stderr, "gpuemu nccl: aborted\n");
  if (fault.kind == "unending") never_end();
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->state;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return guarded([&] { return --depth > 0 ? ncclSuccess : exchange(std::exchange(queued, {})); });
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return operation(comm, [&] {
    return queue({comm, peer, false, const_cast<void*>(data),
                  std::vector<char>(count * size_of(type)), stream});
  });
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return operation(comm, [&] {
    return queue({comm, peer, true, data, std::vector<char>(count * size_of(type)), stream});
  });
}
ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return operation(comm, [&] {
    const std::size_t bytes = count * size_of(type);
    ++depth;
    for (int r = 0; r < comm->mail->ranks(); ++r) {
      queue({comm, r, false, const_cast<void*>(in), std::vector<char>(bytes), stream});
      queue({comm, r, true, static_cast<char*>(out) + bytes * static_cast<std::size_t>(r),
             std::vector<char>(bytes), stream});
    }
    return --depth > 0 ? ncclSuccess : exchange(std::exchange(queued, {}));
  });
}

// The largest of each element, at once: within a group too, as nothing else of it is waited for.
ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return operation(comm, [&] {
    if (op != ncclMax) throw std::runtime_error("sums in an order of NCCL's own are not wanted");
    const std::size_t bytes = count * size_of(type);
    std::vector<char> mine(bytes);
    if (!copy(mine.data(), in, bytes, cudaMemcpyDeviceToHost, stream))
      return ncclUnhandledCudaError;
    for (std::size_t at = 0; at < bytes; at += 4096) {
      const std::size_t size = std::min<std::size_t>(4096, bytes - at);
      const std::vector<char> part = gather(*comm->mail, mine.data() + at, size);
      auto* to = reinterpret_cast<float*>(mine.data() + at);
      for (int r = 0; r < comm->mail->ranks(); ++r)
        for (std::size_t i = 0; i < size / sizeof(float); ++i) {
          float value = 0;
          std::memcpy(&value, part.data() + size * r + i * sizeof value, sizeof value);
          to[i] = std::max(to[i], value);
        }
    }
    return copy(out, mine.data(), bytes, cudaMemcpyHostToDevice, stream) ? ncclSuccess
                                                                         : ncclUnhandledCudaError;
  });
}

}  // extern "C"
