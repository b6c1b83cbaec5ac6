// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/Library.hpp"

#include <dlfcn.h>

#include "base/Error.hpp"

namespace taper::nccl {
namespace {

constexpr int kOldest = 21800;  // whose communicators can be split

Library load() {
  Library l{};
  void* handle = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    l.problem = ::dlerror();
    return l;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, name));
    if (function == nullptr && l.problem.empty())
      l.problem = std::string("libnccl.so.2 has no ") + name;
  };
  find(l.get_version, "ncclGetVersion");
  find(l.get_error_string, "ncclGetErrorString");
  find(l.get_unique_id, "ncclGetUniqueId");
  find(l.init_rank, "ncclCommInitRankConfig");
  find(l.split, "ncclCommSplit");
  find(l.count, "ncclCommCount");
  find(l.user_rank, "ncclCommUserRank");
  find(l.destroy, "ncclCommDestroy");
  find(l.abort, "ncclCommAbort");
  find(l.get_async_error, "ncclCommGetAsyncError");
  find(l.all_reduce, "ncclAllReduce");
  find(l.all_gather, "ncclAllGather");
  find(l.send, "ncclSend");
  find(l.receive, "ncclRecv");
  find(l.group_start, "ncclGroupStart");
  find(l.group_end, "ncclGroupEnd");
  if (!l.problem.empty()) return l;
  if (l.get_version(&l.version) != ncclSuccess || l.version < kOldest)
    l.problem = "NCCL " + version_text(l.version) + " is older than " + version_text(kOldest);
  return l;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

void require(ncclResult_t result, const char* call) {
  if (result != ncclSuccess)
    TAPER_FAIL(ExitCode::kFailure, call << " failed: " << library().get_error_string(result)
                                        << " (NCCL_DEBUG=INFO in the environment says more; "
                                           "doc/troubleshooting.md#gpus-and-nccl)");
}

}  // namespace taper::nccl
