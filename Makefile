# `make test` checks everything, on a machine that has Rust; the rest are parts of it, and what helps.
#
# Every Cargo call that compiles code is --release: one profile, so that dependencies build once.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

CARGO ?= cargo
PYTHON ?= python3
VENV := .venv
BENCH_VENV := bench/.venv
export PARTWISE_DATA ?= $(CURDIR)/../shared/data

# Its own target folder may be given to Cargo in the environment.
BUILT := $(abspath $(or $(CARGO_TARGET_DIR),target))

WHEELS := $(BUILT)/wheels
# Tests at a time: more than there are cores, since many wait.
JOBS := $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))
# Python keeps what it compiled of the packages, or each of many processes would compile them again.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider -n $(JOBS)

# What `make fuzz` runs, and for how long.
TARGET ?= npy
SECONDS ?= 1800
FUZZ_TARGETS := $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
FUZZ_SHORT := 20

# What `make bench` runs: CASES=mnist-20,rcv1-100 some of it, QUICK=1 little of it, FRESH=1 all of it again.
CASES ?=
BENCH := $(if $(CASES),--cases $(CASES)) $(if $(QUICK),--quick) $(if $(FRESH),--fresh)

.PHONY: help book test test-all fmt fmt-check clippy doc unit doctest oracle report chromium-installed mpi mpi-installed mpich bench-mpi bench-plan \
	bench-network paper privacy \
	bench bench-claims bench-seeds bench-limits bench-report bench-kernels bench-memory bench-python \
	wheel installed python sdist docs deny fuzz fuzz-short fuzz-seeds federation stress long-runs clean

# `make test MPI=no` does without MPI. Otherwise all Cargo calls choose the same packages, so that dependencies build once.
MPI ?= yes
ifeq ($(MPI),no)
PACKAGES := --workspace --exclude partwise-mpi
else
PACKAGES := --workspace
MPI_TESTS := mpi
clippy unit doctest oracle report docs: mpi-installed
endif
unit: chromium-installed
WITH_MPI := --workspace --features partwise-cli/mpi
DOCUMENTED := $(if $(MPI_TESTS),$(WITH_MPI),$(PACKAGES))
# Neither benchmarks nor the Python module, which its wheel builds.
TESTS := --bins --tests
# What tests of other languages call; by the choice of packages and targets it is built from what the tests were.
PROGRAMS := --bins --example dump --example factorize --example solve

# $(call make-venv,folder,requirements): a Python environment with what is required, rebuilt if that changed; by uv, which
# takes a third of the time, or by pip where that finds its way to the packages and uv does not.
define make-venv
	@if ! $(PYTHON) -c 'import ensurepip, venv' >/dev/null 2>&1; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -y -qq python3 python3-venv; \
		else \
			echo 'This needs Python 3 with its venv module: install python3 and python3-venv, then call make again.' >&2; \
			exit 1; \
		fi; \
	fi
	$(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check uv && $(1)/bin/uv pip install --quiet --python $(1) -r $(2) \
		|| $(1)/bin/python -m pip install --quiet --disable-pip-version-check -r $(2)
endef

help:
	@echo 'make test      format, lints, docs, unit, property, command-line, documentation and oracle tests, MPI, Python, pages'
	@echo 'make test-all  the same, sdist, long-runs, federation, stress, mpich, deny and fuzz-short'
	@echo 'make report    the report page in headless Chromium, which it installs if it can'
	@echo 'make long-runs  minutes of random matrices, for the scale of components'
	@echo 'make federation  long trials of federations: 50 parties, faults in every phase, cut lines; needs PARTWISE_DATA and root'
	@echo 'make stress    connections to a coordinator, 500 times under load'
	@echo 'make mpi       the transport and whole runs under Open MPI with 2, 3 and 4 ranks; installs Open MPI if it can'
	@echo 'make mpich     the same under MPICH'
	@echo 'make paper     the figures of the paper, up to an hour, goes on where it was; QUICK=1: a little of each, minutes'
	@echo 'make bench-mpi 2 ranks over 1, seconds an iteration'
	@echo 'make bench-plan  what `partwise plan` predicts against what an iteration takes'
	@echo 'make bench-network  which method reaches an error first on which network, half an hour'
	@echo 'make bench     Partwise against other programs, hours; QUICK=1: 5 minutes; CASES=mnist-20,rcv1-100: these'
	@echo 'make privacy   attack results of every protocol on four tables, hours; goes on where it was'
	@echo 'make bench-python  the Python package against the program'
	@echo 'make bench-claims  the claims of the paper on general NMF; make bench-seeds  auto against HALS over five seeds'
	@echo 'make bench-limits  an iteration over its kernels, threads, memory, sparse products against SciPy'
	@echo 'make bench-kernels  each kernel against its floor'
	@echo 'make bench-report  its tables and curves again, from what was measured'
	@echo 'make wheel     the Python package, in $(WHEELS)'
	@echo 'make python    the Python package, installed in $(VENV) and tested'
	@echo 'make docs      run the commands and snippets in the README and docs, compare their output, check links and references'
	@echo 'make book      the guide as a website, in target/book'
	@echo 'make sdist     the source distribution, built and installed by pip outside of this folder'
	@echo 'make bench-memory  8 GiB within 2 GiB, 60 million nonzeros within 256 MiB; 9 GiB of disk, some minutes'
	@echo 'make deny      licences, advisories and sources of the dependencies; builds cargo-deny if it is missing'
	@echo 'make fuzz-short  every reader on damaged files, $(FUZZ_SHORT) seconds each; by cargo-fuzz if it is there'
	@echo 'make fuzz TARGET=npy SECONDS=1800  one reader for long; needs cargo-fuzz and the nightly toolchain'
	@echo 'make fmt       format the code'
	@echo 'make doc       the documentation of the library, in $(BUILT)/doc'
	@echo 'make clean     remove what was built, the Python environment too'

test: fmt-check clippy doc unit doctest oracle report $(MPI_TESTS) python docs

test-all: test sdist long-runs federation stress mpich deny fuzz-short

# What is too long for `make unit`: 180 random matrices, 3000 iterations each, in both precisions; the gate and `few-rounds` on
# real tables of PARTWISE_DATA, and 20 seeds of each attack.
long-runs:
	$(CARGO) test --release --locked -p partwise --test methods -- --ignored
	$(CARGO) test --release --locked -p partwise-secure -- --ignored

# Trials that take minutes, in addition to what `make unit` has of federations: docs/federation.md. Network namespaces need root.
federation: chromium-installed
	$(CARGO) test --release --locked -p partwise-cli --test federation -- --ignored --nocapture --test-threads 1

# Connections that are opened and refused, 500 times while other processes keep all cores busy: a hang that came once in a
# thousand times is not seen otherwise. Without the tests that wait for deadlines.
stress:
	$(CARGO) test --release --locked -p partwise-federation --lib --config "target.'cfg(all())'.runner = '$(CURDIR)/tools/stress.sh'" \
		-- tests:: --skip silent

chromium-installed:
	@tools/chromium.sh

fmt:
	$(CARGO) fmt --all

fmt-check:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --release $(PACKAGES) --all-targets --locked -- -D warnings

# The program and the library have the same name, and so the same page; the library's is the one to read.
doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --release --no-deps --locked $(PACKAGES) --lib

# nextest where it is installed: it runs each test in a process of its own and all of them at once.
unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		set -x; $(CARGO) nextest run --release $(PACKAGES) $(TESTS) --locked --test-threads $(JOBS); \
	else \
		set -x; $(CARGO) test --release $(PACKAGES) $(TESTS) --locked; \
	fi

doctest:
	$(CARGO) test --release $(PACKAGES) --exclude partwise-fuzz --doc --locked

# Against NumPy, SciPy and scikit-learn. Tests that need files of PARTWISE_DATA skip themselves where it is absent.
oracle: $(VENV)/ready
	$(CARGO) build --release $(PACKAGES) $(PROGRAMS) --locked
	PARTWISE_BIN='$(BUILT)/release/partwise' \
	PARTWISE_DUMP='$(BUILT)/release/examples/dump' \
		$(PYTEST) tests/oracle bench

# The page of a run, in headless Chromium, of which one is faster than two. PARTWISE_SCREENSHOTS=FOLDER keeps what it looks like.
report: $(VENV)/ready chromium-installed
	$(CARGO) build --release $(PACKAGES) $(PROGRAMS) --locked
	PARTWISE_BIN='$(BUILT)/release/partwise' $(PYTEST) -n 0 tests/report

# In the same target folder and profile as all else, so that dependencies are not built again.
wheel: $(VENV)/ready
	rm -rf '$(WHEELS)'
	CARGO_TARGET_DIR='$(BUILT)' $(VENV)/bin/maturin build --release --locked --out '$(WHEELS)'

# As users have it: installed from its wheel. The examples in docstrings are tests too.
python: installed
	$(PYTEST) tests/python
	$(VENV)/bin/python -m pytest -q -p no:cacheprovider --doctest-modules --pyargs partwise

installed: wheel
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall '$(WHEELS)'/*.whl

# Every command and snippet that pages show, by the program and the Python package as users have them, and what pages name, tables of
# registries included: CONTRIBUTING.md.
docs: installed
	$(CARGO) build --release $(DOCUMENTED) $(PROGRAMS) --locked
	PARTWISE_BIN='$(BUILT)/release/partwise' PARTWISE_MPI='$(MPI)' $(PYTEST) tests/docs

# The guide as a website; `make docs` checks its links.
book: $(VENV)/ready
	$(VENV)/bin/mdbook build docs

# As users have it where there is no wheel: built by pip, with nothing but Rust there.
SDIST := $(BUILT)/sdist
sdist: $(VENV)/ready
	rm -rf '$(SDIST)'
	$(VENV)/bin/maturin sdist --out '$(SDIST)'
	$(PYTHON) -m venv '$(SDIST)/venv'
	cd '$(SDIST)' && CARGO_TARGET_DIR='$(BUILT)' venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps *.tar.gz
	cd '$(SDIST)' && venv/bin/python -m pip install --quiet --disable-pip-version-check *.whl
	cd '$(SDIST)' && venv/bin/python -c 'import partwise; print(partwise.NMF(2).fit([[1, 2], [3, 4], [5, 6]]).relative_error_)'

$(VENV)/ready: tests/oracle/requirements.txt
	$(call make-venv,$(VENV),$<)
	@touch $@

# The peers one by one: one that cannot be installed is named in the table, and the others are measured. PyPI's torch for
# Linux comes with CUDA, 6 GB in all.
$(BENCH_VENV)/ready: bench/requirements.txt bench/peers.txt
	$(call make-venv,$(BENCH_VENV),$<)
	@while read -r peer; do \
		$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check "$$peer" \
			|| echo "$$peer cannot be installed; it is left out" >&2; \
	done < bench/peers.txt
	@touch $@

# Every run is kept in $(BUILT)/bench: what was interrupted goes on where it was.
bench: $(BENCH_VENV)/ready
	$(CARGO) build --release --locked -p partwise-cli
	$(BENCH_VENV)/bin/python -m pytest -q -p no:cacheprovider bench/test_times.py bench/test_report.py
	cd bench && CARGO_TARGET_DIR='$(BUILT)' .venv/bin/python -m partwise_bench $(BENCH)
	$(MAKE) bench-python

# What the paper says of general NMF, measured: docs/performance/claims.csv.
bench-claims:
	$(CARGO) build --release --locked -p partwise-cli
	$(PYTHON) bench/claims.py '$(BUILT)/release/partwise'

# The final errors of `auto` over five seeds against those of HALS: docs/performance/seeds.csv.
bench-seeds:
	$(CARGO) build --release --locked -p partwise-cli
	$(PYTHON) bench/seeds.py '$(BUILT)/release/partwise'

# Iterations against their kernels, threads, memory, sparse products: docs/performance/limits-*.csv.
bench-limits: $(BENCH_VENV)/ready
	$(CARGO) build --release --locked -p partwise-cli
	$(BENCH_VENV)/bin/python bench/limits.py '$(BUILT)/release/partwise'

# The Python package against the program.
bench-python: installed
	$(CARGO) build --release --locked -p partwise-cli
	$(VENV)/bin/python bench/python_path.py --program '$(BUILT)/release/partwise'

# Each kernel against its floor.
bench-kernels:
	$(CARGO) bench --locked -p partwise-kernels

# Attack results of every protocol on four tables, hours; goes on where it was. docs/privacy.md has the summary.
privacy:
	$(CARGO) build --release --locked -p partwise-secure --example privacy
	'$(BUILT)/release/examples/privacy' '$(BUILT)/privacy.csv'
	'$(BUILT)/release/examples/privacy' --table '$(BUILT)/privacy.csv' > '$(BUILT)/table.csv'
	mv '$(BUILT)/table.csv' docs/privacy/table.csv
	'$(BUILT)/release/examples/privacy' --summary '$(BUILT)/privacy.csv'

bench-report: $(BENCH_VENV)/ready
	cd bench && CARGO_TARGET_DIR='$(BUILT)' .venv/bin/python -m partwise_bench $(BENCH) --part report

# The figures of the paper's Sec. 5, in $(PAPER); what is finished is kept. QUICK=1: a little of each.
PAPER := $(BUILT)/paper$(if $(QUICK),-quick)
paper:
	$(CARGO) build --release --locked -p partwise-cli
	@mkdir -p '$(PAPER)'
	@for file in experiments/*.toml; do \
		name=$$(basename "$$file" .toml); \
		echo "$$name"; \
		'$(BUILT)/release/partwise' experiment "$$file" --data '$(PARTWISE_DATA)' --out "$(PAPER)/$$name" $(if $(QUICK),--quick); \
	done
	@echo 'The figures are in $(PAPER), each with an index.html.'

# Most of its time goes by while ranks find each other.
mpi: mpi-installed
	$(CARGO) clippy --release $(WITH_MPI) --all-targets --locked -- -D warnings
	$(CARGO) test --release $(WITH_MPI) --test mpirun --test mpi --locked -- --test-threads $(JOBS)

mpi-installed:
	@if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null || ! ls /usr/lib/llvm-*/lib/libclang*.so* >/dev/null 2>&1; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo 'installing Open MPI and libclang'; \
			{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
				openmpi-bin libopenmpi-dev libclang-dev clang; } >/dev/null; \
		elif ! command -v mpicc >/dev/null; then \
			echo 'The MPI tests need Open MPI and libclang: install openmpi-bin, libopenmpi-dev and libclang-dev, then make test again.' >&2; \
			exit 1; \
		fi; \
	fi

# In a target folder of its own: the bindings are those of another library.
mpich: mpi-installed
	@if ! command -v mpicc.mpich >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get install -y -qq --no-install-recommends mpich libmpich-dev >/dev/null; \
	fi
	MPICC=mpicc.mpich MPIRUN=mpirun.mpich CARGO_TARGET_DIR='$(BUILT)/mpich' \
		$(CARGO) test --release $(WITH_MPI) --test mpirun --test mpi --locked -- --test-threads $(JOBS)

# Reads PARTWISE_DATA.
bench-mpi: mpi-installed
	$(CARGO) build --release -p partwise-cli --features mpi --locked
	$(PYTHON) bench/mpi.py '$(BUILT)/release/partwise'

# Reads PARTWISE_DATA, and keeps what it measured in $(BUILT)/bench-plan. Nothing else should run on the machine.
bench-plan: mpi-installed
	$(CARGO) build --release -p partwise-cli --features mpi --locked
	$(PYTHON) bench/plan.py '$(BUILT)/release/partwise' '$(BUILT)/bench-plan' --report docs/performance/plan.csv

# Reads PARTWISE_DATA, and goes on where it was interrupted, by what is in $(BUILT)/bench-network.
bench-network:
	$(CARGO) build --release -p partwise-cli --locked
	$(PYTHON) bench/network.py '$(BUILT)/release/partwise' '$(BUILT)/bench-network' --report docs/performance/network.csv

# Matrices larger than the memory given, made and removed again in FOLDER (default: where temporary files go).
bench-memory: $(VENV)/ready
	$(CARGO) build --release --locked
	$(VENV)/bin/python bench/memory.py '$(BUILT)/release/partwise' $(if $(FOLDER),--folder '$(FOLDER)')

# Not in `make test`: building cargo-deny takes minutes, and its advisories come over the network.
deny:
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		set -x; $(CARGO) install --locked cargo-deny; \
	fi
	$(CARGO) deny check

# A reader is given 64 MiB; beyond that there is the fuzzer's own memory.
LIBFUZZER := -rss_limit_mb=512 -malloc_limit_mb=300 -timeout=10 -print_final_stats=1
# Findings name their lines. Freed memory is kept aside for a while, which counts.
RUN_FUZZER := CARGO_PROFILE_RELEASE_DEBUG=line-tables-only ASAN_OPTIONS=quarantine_size_mb=32 $(CARGO) +nightly fuzz run --features libfuzzer

fuzz: fuzz-seeds
	$(RUN_FUZZER) $(TARGET) -- $(LIBFUZZER) -max_total_time=$(SECONDS)

# The seeds of every target, where cargo-fuzz looks for them.
fuzz-seeds:
	$(CARGO) run --release --locked -p partwise-fuzz --example seeds -- fuzz/corpus

# Without cargo-fuzz or the nightly toolchain, random changes of the seeds that do not see what they reach. An overflow
# that only wraps is a finding too.
fuzz-short:
	@if $(CARGO) +nightly fuzz --version >/dev/null 2>&1; then \
		$(MAKE) fuzz-seeds; \
		for target in $(FUZZ_TARGETS); do \
			( set -x; $(RUN_FUZZER) $$target -- $(LIBFUZZER) -max_total_time=$(FUZZ_SHORT) ); \
		done; \
	else \
		set -x; \
		CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
			$(CARGO) run --release --locked -p partwise-fuzz --example smoke -- $(FUZZ_SHORT); \
	fi

clean:
	$(CARGO) clean
	rm -rf $(VENV) $(BENCH_VENV)
