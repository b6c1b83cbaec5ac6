# SPDX-License-Identifier: Apache-2.0
"""Taper for Spack: spack repo add packaging/spack && spack install taper. The source is the tree that this file is in."""
from pathlib import Path

from spack.package import *


class Taper(CMakePackage):
    """Reinforcement learning of language models (RLHF, RLVR) on HPC clusters: one program for MPI ranks."""

    git = Path(__file__).resolve().parents[4].as_uri()
    license("Apache-2.0")
    version("main", branch="main")

    variant("report", default=True, description="Python packages of taper report")
    variant("cuda", default=False, description="For NVIDIA GPUs")
    variant("cuda_arch", default="90", values=("80", "86", "89", "90"), description="Compute capability", when="+cuda")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3.1:")
    depends_on("hdf5@1.10:1 +mpi")
    depends_on("kokkos@4.5:4 +openmp+serial cxxstd=20")
    for arch in ("80", "86", "89", "90"):
        depends_on(f"kokkos +cuda+wrapper cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
        depends_on(f"trilinos@16.1:16 +cuda+wrapper+kokkos+tpetra cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.18:", when="+cuda")
    depends_on("trilinos@16.1:16 +kokkos+tpetra", when="~cuda")  # brings Teuchos; wants one version of Kokkos, 4.5.1 or a 4.7
    depends_on("nlohmann-json@3.9:")
    depends_on("oniguruma")
    depends_on("utf8proc")
    depends_on("yaml-cpp@0.7:")
    depends_on("catch2@3:", type=("build", "test"))
    depends_on("python@3.10:", type=("build", "run"), when="+report")
    depends_on("py-h5py", type="run", when="+report")
    depends_on("py-matplotlib", type="run", when="+report")

    # No package has minja (chat templates); its header is all that is needed.
    resource(name="minja", git="https://github.com/google/minja.git", branch="main", placement="minja")

    conflicts("%gcc@:11", msg="Taper is written in C++20: GCC 12 or newer")
    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("TAPER_ENABLE_CUDA", "cuda"),
            self.define("TAPER_ENABLE_TESTS", self.run_tests),
            self.define("TAPER_ENABLE_FAULTS", self.run_tests),
            self.define("TAPER_ENABLE_WERROR", False),
            self.define("MINJA_INCLUDE_DIR", join_path(self.stage.source_path, "minja", "include")),
        ]

    def setup_build_environment(self, env):
        if self.spec.satisfies("+cuda"):  # as an option, the nvcc_wrapper of Kokkos would hand it to the host's compiler
            env.set("NVCC_APPEND_FLAGS", "-ftz=true")

    def setup_run_environment(self, env):
        env.set("TAPER_SLURM", join_path(self.prefix.share, "taper", "slurm"))
        if self.spec.satisfies("+report"):
            env.set("TAPER_PYTHON", self.spec["python"].command.path)
