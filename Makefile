# Everything a developer does. `make help` lists it.

CARGO ?= cargo
# Time of one coverage-guided fuzz target in `make fuzz`.
FUZZ_SECONDS ?= 60
# Mutations of each fuzz target in `make test`.
SMOKE_ITERATIONS ?= 20000
SMOKE_SEED ?= 1
# Time of `make soak`.
SOAK_SECONDS ?= 600

FUZZ_TARGETS = $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))

# Ports of DPDK are compiled where it is installed with its headers.
HAS_DPDK := $(shell pkg-config --atleast-version=22.11 libdpdk 2>/dev/null && command -v cc)
DPDK_FEATURE = $(if $(HAS_DPDK),--features pathweave-cli/dpdk)
# What tests build. All of it asks for the same features, so that nothing is built twice.
ALL = --locked --workspace --features pathweave-datapath/tokio $(DPDK_FEATURE)
# Runs over MPI ranks are compiled where an MPI and libclang, which reads its headers, are installed.
HAS_MPI := $(shell command -v mpicc >/dev/null && PATH=$$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -Eo -m1 'libclang(-[0-9]+)?\.so')
MPI_FEATURE = $(if $(HAS_MPI),--features pathweave-cli/mpi)
# All features, but for libFuzzer, which takes a C++ compiler.
EVERYTHING = --features pathweave-datapath/tokio,pathweave-policy/testing,pathweave-wire/std $(MPI_FEATURE) $(DPDK_FEATURE)
# Where debug builds are.
DEBUG = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug

# The Python that tests and `make python` start from.
PYTHON ?= python3
VENV = .venv
# The environment's tools, and the wheel's build with what the workspace has built already.
IN_VENV = VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH=$(CURDIR)/$(VENV)/bin:$$PATH

.PHONY: help count budget build demo module profile dist package test-dist test-wheel release test quick lint bench docs fuzz smoke bare python wheel test-python python-model notebooks web test-web browser test-browser site docs-serve soak miri tsan hardware hardware-test programs test-mpi test-ranks test-fabtests clean provider install-provider nccl test-nccl test-torch

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Libraries for other programs are found beside the program, under names that Cargo does not give.
RELEASE = $(or $(CARGO_TARGET_DIR),target)/release
build: ## Build the program, and beside it the libfabric provider and NCCL's plug-in.
	$(CARGO) build --locked --release -p pathweave-cli -p pathweave-ofi -p pathweave-nccl
	ln -f $(RELEASE)/libpathweave_fi.so $(RELEASE)/libpathweave-fi.so
	ln -f $(RELEASE)/libnccl_net_pathweave.so $(RELEASE)/libnccl-net-pathweave.so

# The profile of what is handed out or measured: a per cent or a few faster than `release`, for a longer build; a few more where
# `make profile` has counted what the programs do most.
TUNED = $(or $(CARGO_TARGET_DIR),target)/tuned
PROFILE = $(or $(CARGO_TARGET_DIR),target)/profile
BY_PROFILE = RUSTC_WORKSPACE_WRAPPER=$(abspath $(wildcard $(PROFILE)/rustc-*))

# What libfabric looks for ends in -fi.so; Cargo allows no hyphen in a library's name.
PROVIDER = $(TUNED)/libpathweave_fi.so
PREFIX ?= /usr/local

profile: ## Count what the programs do most, by which provider, dist, wheel and bench are compiled. Needs rustup's llvm-tools.
	.ci/profile $(PROFILE)

provider: ## Build the libfabric provider; docs/mpi.md.
	$(BY_PROFILE) $(CARGO) build --locked --profile tuned -p pathweave-ofi

install-provider: provider ## Install it for PREFIX's libfabric, or for FI_PROVIDER_PATH=PREFIX/lib/libfabric.
	install -D -m 755 $(PROVIDER) $(DESTDIR)$(PREFIX)/lib/libfabric/libpathweave-fi.so

# What NCCL looks for has hyphens; docs/nccl.md.
NCCL_PLUGIN = $(TUNED)/libnccl_net_pathweave.so

nccl: ## Build NCCL's network plug-in, into PREFIX/lib; docs/nccl.md.
	$(BY_PROFILE) $(CARGO) build --locked --profile tuned -p pathweave-nccl
	install -D -m 755 $(NCCL_PLUGIN) $(DESTDIR)$(PREFIX)/lib/libnccl-net-pathweave.so

# The demo simulates, and the datapath takes a quarter of the build: it is left out unless it has been built.
DEMO_FEATURES = $(if $(wildcard $(or $(CARGO_TARGET_DIR),target)/release/deps/libpathweave_datapath-*.rlib),,--no-default-features)

demo: ## Six transports, each on the traffic it was made for; ends with five sentences and a page.
	$(CARGO) build --locked --release -p pathweave-cli $(DEMO_FEATURES)
	$(CARGO) run --locked --release --quiet -p pathweave-cli $(DEMO_FEATURES) -- demo

dist: ## A tarball and a Debian package, into target/dist: program, manual pages, completions, provider, NCCL's plug-in.
	$(BY_PROFILE) $(CARGO) build --locked --profile tuned -p pathweave-ofi -p pathweave-nccl
	$(BY_PROFILE) $(CARGO) build --locked --profile tuned -p pathweave-cli
	mkdir -p target/dist
	.ci/dist target/dist $(TUNED)

package: ## Package the crates that are of use by themselves, as a registry takes them, and compile each package.
	.ci/package

release: ## Make the release VERSION: changelog, version numbers, a commit, tests, packages, a local tag; docs/releasing.md.
	.ci/release prepare '$(VERSION)'
	.ci/release ready '$(VERSION)'
	$(MAKE) lint
	$(MAKE) test
	$(MAKE) profile
	$(MAKE) dist
	$(MAKE) wheel
	$(MAKE) test-dist test-wheel
	.ci/release ready '$(VERSION)'
	git tag --annotate --message 'pathweave $(VERSION)' 'v$(VERSION)'

test: bare smoke ## All tests.
	@$(if $(HAS_DPDK),,echo "SKIPPED: no DPDK (libdpdk-dev); its ports were neither compiled nor tested")
	.ci/tests $(ALL)
	@# Two at a time, for each keeps about one core busy.
	$(MAKE) --jobs=2 --output-sync=target test-python test-web test-browser site
	.ci/hardware
	$(MAKE) budget

quick: ## Formatting, lints and tests of the crates with changes that are not committed.
	.ci/quick

lint: $(VENV)/tools ## Formatting and lints, all features; types of the Python package.
	.ci/language
	.ci/docs-size
	RUSTDOCFLAGS="-D rustdoc::broken_intra_doc_links -A rustdoc::private_intra_doc_links" $(CARGO) doc --locked --workspace --no-deps --document-private-items --quiet
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path .ci/bare/Cargo.toml
	$(CARGO) clippy --locked --workspace --all-targets $(EVERYTHING) -- -D warnings
	$(CARGO) clippy --locked -p pathweave-cli --no-default-features -- -D warnings
	$(VENV)/bin/ruff check --quiet
	$(VENV)/bin/ruff format --check --quiet
	$(VENV)/bin/mypy --no-error-summary

bench: provider ## Measure speed and memory, of simulator, transport and provider; writes target/bench.json.
	$(BY_PROFILE) $(CARGO) build --locked --profile tuned -p pathweave-cli -p pathweave-bench $(DPDK_FEATURE)
	$(TUNED)/pathweave-bench

count: ## Count instructions a packet-hop, by crate, and compare with .ci/instructions.json. Needs valgrind.
	.ci/count

budget: ## The same for the build of `make test`, in seconds, compared with .ci/budget.json. Needs valgrind.
	$(CARGO) build $(ALL) --example count
	.ci/count $(DEBUG)/examples/count

$(VENV)/tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python .ci/python-requirements > $@.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $@.txt
	touch $@

python: $(VENV)/tools ## The Python package, into .venv.
	$(IN_VENV) maturin develop --quiet --release --locked

# For any CPython from 3.11 on: the module uses the stable interface only.
wheel: $(VENV)/tools ## The Python package with the program, as a wheel in target/wheels.
	$(BY_PROFILE) $(IN_VENV) python python/tools/pathweave_build.py --profile tuned --out target/wheels

test-dist: ## The packages of `make dist`, installed in a bare Debian.
	.ci/installed target/dist

# The last one that was made.
WHEEL = $$(ls -t target/wheels/pathweave-*.whl | head -1)
test-wheel: $(VENV)/tools ## The wheel of `make wheel`: its files; the tutorial with each Python and in a bare Debian; packaging/ there.
	$(VENV)/bin/python .ci/wheel $(WHEEL)
	$(VENV)/bin/python .ci/container $(WHEEL)

test-python: module ## Tests of the Python package.
	PATHWEAVE_PROGRAM=$(DEBUG)/pathweave $(FROM_SOURCE) $(VENV)/bin/pytest --quiet
	$(FROM_SOURCE) $(VENV)/bin/python -m mypy.stubtest pathweave._pathweave --mypy-config-file pyproject.toml

# The module as the workspace builds it, where Python finds it beside its source: maturin would build every crate once more, with
# other features.
FROM_SOURCE = PYTHONPATH=$(CURDIR)/python
module: $(VENV)/tools programs
	.ci/python-module $(DEBUG)

# How often, and which of them: of open-mpi-5, open-mpi-4, mpich, intel-mpi, oneccl, pytorch.
RUNS ?= 1
MPI ?= open-mpi-5,open-mpi-4,mpich,intel-mpi,oneccl,pytorch
# More words for tests/mpi/run.py.
MPI_OPTIONS ?=

test-mpi: programs ## Each MPI of docs/mpi.md over the provider, byte by byte; fetches packages into target/mpi.
	$(PYTHON) tests/mpi/run.py $(DEBUG)/deps/libpathweave_fi.so --only $(MPI) --runs $(RUNS) $(MPI_OPTIONS)

test-ranks: ## One run by 2 and 4 ranks of each MPI that is installed (Open MPI, MPICH); docs/several-machines.md.
	$(PYTHON) tests/ranks/run.py --target $(or $(CARGO_TARGET_DIR),target) -- $(ALL)

# Where fabtests is installed, if not where the shell finds it.
FABTESTS ?=

test-fabtests: programs ## libfabric's own tests (fabtests) over the provider; docs/mpi.md. Skipped without them.
	$(PYTHON) tests/fabtests/run.py $(DEBUG)/deps/libpathweave_fi.so $(if $(FABTESTS),--fabtests $(FABTESTS))

# Source of aws-ofi-nccl.
AWS ?=

test-nccl: programs ## Functional tests of aws-ofi-nccl (AWS=its source) over NCCL's plug-in; docs/nccl.md. Needs an MPI.
	$(PYTHON) tests/nccl/run.py $(DEBUG)/deps/libnccl_net_pathweave.so $(if $(AWS),--aws $(AWS))

TORCH = $(or $(CARGO_TARGET_DIR),target)/torch

test-torch: module ## The backend of torch.distributed; docs/torch.md. Fetches torch (half a gigabyte) into target/torch.
	$(PYTHON) tests/torch/install.py $(TORCH)
	PYTHONPATH=$(CURDIR)/python:$(TORCH) $(VENV)/bin/python -m pytest --quiet python/tests/torch_backend

# What tests of other languages start or load: the program, what writes samples of reports, the fuzz targets, the Python module.
# Examples, and with them the features of what tests need, are in it, so that `cargo test` builds nothing of it again.
# Samples go first: the executable of a source that is gone would be run.
programs:
	rm -f $(DEBUG)/examples/sample_*
	$(CARGO) build --quiet $(ALL) --lib --bins --examples

python-model: module ## Write the typed scenarios of the Python package from the engine's schema.
	$(FROM_SOURCE) $(VENV)/bin/python python/tools/generate_model.py

notebooks: module ## Execute the notebooks of docs/notebooks and keep what they print and draw.
	$(FROM_SOURCE) $(VENV)/bin/python python/tools/notebooks.py

web: ## Build the report viewer into web/dist; needs Node. The result is committed.
	cd web && npm ci --silent && npm run --silent check && npm run --silent build

test-web: programs ## The viewer: source and built page agree, reports work in Chromium. Skipped without Node.
	.ci/web

browser: ## The page with the simulator as WebAssembly, into target/browser/play.html; needs rustup's wasm32-unknown-unknown and Node.
	.ci/browser

test-browser: programs browser ## The page, compared with the program under Node and in Chromium. Skipped without them.
	.ci/browser test

# MkDocs with Material: wheels of a few megabytes into the environment that the Python package has anyway, where mdBook
# would have to be compiled first.
$(VENV)/site: $(VENV)/tools
	$(VENV)/bin/pip install --quiet --disable-pip-version-check 'mkdocs-material>=9.7,<10'
	touch $@

site: $(VENV)/site browser ## The documents as a site, into target/site, with the page of `make browser`; every link is checked.
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

docs: site ## The site with the reference of every crate: open target/site/index.html.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps $(EVERYTHING)
	cp -r $(or $(CARGO_TARGET_DIR),target)/doc target/site/rust

docs-serve: ## The site of the last `make docs` on 127.0.0.1:8000, where its search works.
	$(PYTHON) -m http.server --bind 127.0.0.1 --directory target/site 8000

bare: ## Prove that the protocol core needs no operating system.
	.ci/bare-target

smoke: programs ## Run every fuzz target briefly, on stable Rust.
	$(DEBUG)/smoke --iterations $(SMOKE_ITERATIONS) --seed $(SMOKE_SEED)

fuzz: ## Fuzz with coverage feedback (nightly Rust and cargo-fuzz), or longer without.
	@if $(CARGO) +nightly fuzz --version >/dev/null 2>&1; then \
		for target in $(FUZZ_TARGETS); do \
			mkdir -p fuzz/corpus/$$target && \
			$(CARGO) +nightly fuzz run --features libfuzzer $$target fuzz/corpus/$$target fuzz/seeds/$$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
		done; \
	else \
		echo "cargo-fuzz or a nightly compiler is missing; running without coverage feedback"; \
		seed=$$(date +%s); $(CARGO) run --quiet --locked --profile fuzz -p pathweave-fuzz --bin smoke -- --iterations 1000000 --seed $$seed; \
	fi

soak: ## Chaos over all schemes in simulated time, over sockets and over the libfabric provider, beside liars, and in a lab whose links are in trouble; every byte checked, memory flat.
	SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked -p pathweave-datapath --test conformance -- --ignored --exact soak::in_simulated_time --nocapture
	SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked -p pathweave-datapath --test conformance -- --ignored --exact soak::over_sockets --nocapture
	SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked -p pathweave-datapath --test conformance -- --ignored --exact liars::soak --nocapture
	SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked -p pathweave-ofi --test soak -- --ignored --exact every_byte_arrives_over_a_hostile_wire --nocapture
	SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked -p pathweave-lab --test soak -- --ignored --nocapture
	$(CARGO) test --locked -p pathweave-lab --test datagrams -- --ignored --nocapture

# In a folder of its own, for it builds everything in another way. It takes a thousand times as long as the processor, hence
# few cases of each random test.
miri: ## Undefined behaviour in memory that the network and the application share, by Miri of nightly Rust. Skipped without it.
	@if $(CARGO) +nightly miri --version >/dev/null 2>&1; then .ci/miri $(or $(CARGO_TARGET_DIR),target)/miri 4; \
	else echo "skipped: there is no Miri (rustup component add --toolchain nightly miri rust-src)"; fi

tsan: ## Races between threads of the datapath, by ThreadSanitizer of nightly Rust. Skipped without it.
	@if test -d "$$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library"; then .ci/tsan $(or $(CARGO_TARGET_DIR),target)/tsan; \
	else echo "skipped: there is no nightly Rust with its source (rustup toolchain install nightly --component rust-src)"; fi

hardware: ## What the circuits of hardware/laps take of an FPGA, by Yosys, into docs/hardware.md. Skipped without it.
	$(PYTHON) hardware/report.py

# Random operations of each circuit and size, in tests that simulate them.
COSIM_OPERATIONS ?= 10000000

hardware-test: ## All tests of the circuits: lints, ten million random operations a size in Verilator, proofs by Yosys.
	.ci/hardware
	COSIM_OPERATIONS=$(COSIM_OPERATIONS) $(CARGO) test --locked -p pathweave-cosim -- --include-ignored --nocapture --test-threads 1
	$(PYTHON) hardware/prove.py

clean: ## Remove what was built.
	$(CARGO) clean
	rm -rf python/pathweave/lib web/node_modules fuzz/target fuzz/corpus fuzz/artifacts results $(VENV)
