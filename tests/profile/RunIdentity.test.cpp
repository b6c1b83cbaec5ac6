// SPDX-License-Identifier: Apache-2.0
#include "profile/RunIdentity.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "base/Error.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("settings of the transport count, those of its logging and the host do not") {
  const std::vector<std::string> environment{
      "UCX_TLS=tcp,self",          "SHELL=sh",
      "MPIR_CVAR_NOLOCAL=1",       "UCX_LOG_LEVEL=info",
      "MPIR_CVAR_DEBUG_SUMMARY=1", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME=node7",
      "UCX_NET_DEVICES=",          "UCX",
      "OMPI_MCA_btl=tcp,self",     "OMPI_MCA_rmaps_base_oversubscribe=1"};
  const Facts both{{"UCX_TLS", "tcp,self"}, {"UCX_NET_DEVICES", ""}};
  Facts mpich = both, open_mpi = both;
  mpich["MPIR_CVAR_NOLOCAL"] = "1";
  open_mpi["OMPI_MCA_btl"] = "tcp,self";
  CHECK(transport_settings(environment, "MPICH 4.0.2") == mpich);
  CHECK(transport_settings(environment, "Open MPI v4.1.4") == open_mpi);
}

TEST_CASE("an identity survives as text") {
  ProfileIdentity identity;
  identity.model = {{"layers", "30"}, {"dtype", "bf16"}};
  identity.machine = {{"cpu", "Some CPU @ 2.60GHz"}};
  identity.transport = {{"UCX_NET_DEVICES", ""}};
  const ProfileIdentity back = identity_from_lines(to_lines(identity));
  CHECK(back.model == identity.model);
  CHECK(back.machine == identity.machine);
  CHECK(back.transport == identity.transport);
  CHECK(back.build.empty());
  CHECK_THROWS_AS(identity_from_lines("soul\tname\tvalue\n"), Error);
  CHECK_THROWS_AS(identity_from_lines("model\tlayers\n"), Error);
}

TEST_CASE("the identity of a run is the same on all ranks and names what speed depends on") {
  TestRanks world;
  Ranks& ranks = world.ranks;
  ranks.hosts = gather_host_map(ranks.world(), find_place("n" + std::to_string(ranks.rank() / 2)));
  const ModelFiles files(TAPER_DATA_DIR "/model");
  const ProfileIdentity id = gather_identity(files, WeightType::kF32, ranks);
  CHECK_NOTHROW(require_equal(ranks, "the identity", to_lines(id)));
  CHECK(id.model.at("layers") == "4");
  for (const auto& [name, value] : shape_facts(files.config)) CHECK(id.model.at(name) == value);
  CHECK(id.model.at("dtype") == "f32");
  CHECK(id.machine.at("ranks") == std::to_string(world_size()));
  CHECK(id.machine.at("ranks_per_node") == std::to_string(std::min(world_size(), 2)));
  CHECK(!id.transport.at("library").empty());
  CHECK(!id.build.at("version").empty());
  const ProfileIdentity bf16 = gather_identity(files, WeightType::kBf16, ranks);
  CHECK(compare_identity(bf16, id).refusals.size() == 1);
  CHECK(compare_identity(id, id).refusals.empty());
}
