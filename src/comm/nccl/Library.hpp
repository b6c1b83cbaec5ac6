// SPDX-License-Identifier: Apache-2.0
//
// NCCL, loaded when it is first needed, so that programs start where it is missing.
#pragma once

#include <nccl.h>

#include <string>

namespace taper::nccl {

// The functions of libnccl.so.2 that are used.
struct Library {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommSplit) split;
  decltype(&ncclCommCount) count;
  decltype(&ncclCommUserRank) user_rank;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommGetAsyncError) get_async_error;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;

  std::string problem;  // why it cannot be used; empty: it can
  int version = 0;      // 22809 for 2.28.9
};
const Library& library();

std::string version_text(int version);

// Throws Error that names the call unless it succeeded.
void require(ncclResult_t result, const char* call);

}  // namespace taper::nccl
