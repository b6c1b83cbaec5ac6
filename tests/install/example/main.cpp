// SPDX-License-Identifier: Apache-2.0
// Reads a run file as `taper train` does and lets all ranks agree on something.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "comm/Collectives.hpp"
#include "comm/Group.hpp"
#include "param/ParamFile.hpp"
#include "param/Schema.hpp"
#include "session/Startup.hpp"
#include "train/RunOptions_params.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  taper::MpiSession session(argc, argv);
  taper::RunOptions options;
  taper::param::Schema schema;
  taper::describe(schema, options);
  schema.read(taper::param::ParamFile::read(argv[1]));
  const taper::Group world = taper::Group::world(MPI_COMM_WORLD);
  std::vector<std::int32_t> last{world.rank()};
  taper::all_reduce_max(world, last);
  if (session.rank() == 0)
    std::printf("%d ranks, %lld iterations\n", last.front() + 1,
                static_cast<long long>(options.training.iterations));
  return 0;
}
