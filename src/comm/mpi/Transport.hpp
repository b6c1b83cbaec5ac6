// SPDX-License-Identifier: Apache-2.0
//
// The collectives of comm/Collectives.hpp on raw bytes over MPI, waiting as the group's policy
// says. No numbering and no audit: these are the parts that a counted collective is made of. No
// function may be called on a null group.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/Group.hpp"

namespace taper::mpi {

// Collective over the group.
void barrier(const Group& group);

// `bytes` from `root` to all. Collective over the group.
void broadcast(const Group& group, std::byte* data, std::int64_t bytes, int root);

// Rank r contributes bytes[r]; `out` receives all, in rank order. Collective over the group.
void all_gather(const Group& group, std::byte* out, const std::byte* in,
                std::span<const std::int64_t> bytes);

// In place; only for operations whose result does not depend on the order. Collective over the
// group.
void all_reduce(const Group& group, void* data, std::int64_t count, std::size_t element_bytes,
                MPI_Datatype type, MPI_Op op);

// `in` holds the pieces for ranks 0..n-1 one after the other, in_bytes[r] long; `out` the pieces
// from ranks 0..n-1. Collective over the group.
void all_to_all(const Group& group, std::byte* out, std::span<const std::int64_t> out_bytes,
                const std::byte* in, std::span<const std::int64_t> in_bytes);

}  // namespace taper::mpi
