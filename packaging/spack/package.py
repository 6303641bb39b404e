# Spack's recipe: copy it to packages/pathweave/package.py of a repository of yours, then `spack install pathweave`.
#
# Checked by python/tests/test_packaging.py, which executes it with stand-ins for Spack's functions.
from spack.package import *


class Pathweave(Package):
    """Transports of AI-cluster fabrics, simulated packet by packet and run over real networks: program, libfabric
    provider, NCCL's plug-in."""

    homepage = "https://github.com/pathweave/pathweave"
    git = "https://github.com/pathweave/pathweave.git"

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    # Programs bring their own; the provider needs this version of its interface.
    depends_on("libfabric@1.17:", type="run")

    def install(self, spec, prefix):
        crates = ("pathweave-cli", "pathweave-ofi", "pathweave-nccl")
        selected = [word for crate in crates for word in ("-p", crate)]
        which("cargo", required=True)("build", "--locked", "--release", *selected)
        mkdirp(prefix.bin, join_path(prefix.lib, "libfabric"))
        install("target/release/pathweave", prefix.bin)
        install("target/release/libpathweave_fi.so", join_path(prefix.lib, "libfabric", "libpathweave-fi.so"))
        install("target/release/libnccl_net_pathweave.so", join_path(prefix.lib, "libnccl-net-pathweave.so"))

    def setup_run_environment(self, env):
        env.prepend_path("FI_PROVIDER_PATH", join_path(self.prefix.lib, "libfabric"))
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)
