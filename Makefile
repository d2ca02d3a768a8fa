# `make test` checks everything on a machine with Rust; the other targets are parts of it, benchmarks and tools.
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

# Cargo's target folder can be set in the environment.
BUILT := $(abspath $(or $(CARGO_TARGET_DIR),target))

WHEELS := $(BUILT)/wheels
# Simultaneous tests: more than cores, because many wait.
JOBS := $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))
# Python caches compiled packages, or each of many processes would compile them again.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider -n $(JOBS)

# What `make fuzz` runs, and for how long.
TARGET ?= npy
SECONDS ?= 1800
FUZZ_TARGETS := $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
FUZZ_SHORT := 20

# What `make bench` runs: CASES=mnist-20,rcv1-100 selects cases, QUICK=1 is a short version, FRESH=1 repeats everything.
CASES ?=
BENCH := $(if $(CASES),--cases $(CASES)) $(if $(QUICK),--quick) $(if $(FRESH),--fresh)

.PHONY: help book test test-all fmt fmt-check clippy doc unit doctest oracle oracle-long report chromium-installed mpi mpi-installed mpich bench-mpi bench-plan \
	bench-network paper privacy \
	bench bench-claims bench-seeds bench-losses bench-limits bench-report bench-kernels bench-memory bench-python \
	wheel installed python sdist docs deny fuzz fuzz-short fuzz-seeds federation stress long-runs oracle-long clean

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
PROGRAMS := --bins --example dump --example digits --example solve

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
	@echo 'make test      format, lints, unit, property, command-line, documentation, oracle, MPI, Python and report page tests'
	@echo 'make test-all  make test, and sdist, long-runs, federation, stress, mpich, deny and fuzz-short'
	@echo 'make report    test the report page in headless Chromium; installs it if possible'
	@echo 'make long-runs  long runs on random matrices, which test the scale of components'
	@echo 'make federation  long trials of federations: 50 parties, faults in every phase, cut connections; needs PARTWISE_DATA and root'
	@echo 'make stress    test connections to a coordinator, 500 times under load'
	@echo 'make mpi       test the transport and whole runs under Open MPI with 2, 3 and 4 processes; installs Open MPI if possible'
	@echo 'make mpich     the same under MPICH'
	@echo 'make paper     the figures of the paper, up to an hour, resumes after an interruption; QUICK=1: short versions, minutes'
	@echo 'make bench-mpi seconds per iteration with 1 and 2 processes'
	@echo 'make bench-plan  predictions of `partwise plan` against measured iterations'
	@echo 'make bench-network  the fastest method on each network, half an hour'
	@echo 'make bench     Partwise against other programs, hours; QUICK=1: 5 minutes; CASES=mnist-20,rcv1-100: these'
	@echo 'make privacy   attack results of every protocol on four tables, hours; resumes after an interruption'
	@echo 'make bench-python  the Python package against the program'
	@echo 'make bench-claims  the claims of the paper on general NMF'
	@echo 'make bench-seeds  auto against HALS over five seeds'
	@echo 'make bench-losses  time to the Kullback-Leibler divergence of scikit-learn after 50 and 500 iterations'
	@echo 'make bench-limits  iterations against their kernels, threads, memory, sparse products against SciPy'
	@echo 'make bench-kernels  each kernel against its floor'
	@echo 'make bench-report  tables and curves of make bench from existing measurements'
	@echo 'make wheel     the Python package, in $(WHEELS)'
	@echo 'make python    the Python package, installed in $(VENV) and tested'
	@echo 'make docs      run the commands and snippets in the README and docs, compare their output, check links and references'
	@echo 'make book      the guide as a website, in target/book'
	@echo 'make sdist     the source distribution, built and installed by pip in another folder'
	@echo 'make bench-memory  8 GiB within 2 GiB, 60 million nonzeros within 256 MiB; 9 GiB of disk, a few minutes'
	@echo 'make deny      check licences, advisories and sources of the dependencies; builds cargo-deny if it is missing'
	@echo 'make fuzz-short  every reader on damaged files, $(FUZZ_SHORT) seconds each; with cargo-fuzz if installed'
	@echo 'make fuzz TARGET=npy SECONDS=1800  fuzz one reader; needs cargo-fuzz and the nightly toolchain'
	@echo 'make fmt       format the code'
	@echo 'make doc       the documentation of the library, in $(BUILT)/doc'
	@echo 'make clean     remove everything built, including the Python environments'

test: fmt-check clippy doc unit doctest oracle report $(MPI_TESTS) python docs

test-all: test sdist long-runs federation stress mpich deny fuzz-short

# Tests that are too long for `make unit`: 180 random matrices, 3000 iterations each, in both precisions; the gate and
# `few-rounds` on real tables of PARTWISE_DATA, and 20 seeds of each attack.
long-runs:
	$(CARGO) test --release --locked -p partwise-core --test methods -- --ignored
	$(CARGO) test --release --locked -p partwise-secure -- --ignored
	$(MAKE) oracle-long

# Signatures of real mutations by scikit-learn's best of 20 runs.
oracle-long: $(VENV)/ready
	$(CARGO) build --release $(PACKAGES) $(PROGRAMS) --locked
	PARTWISE_LONG=1 PARTWISE_BIN='$(BUILT)/release/partwise' $(PYTEST) tests/oracle/test_losses.py -k stable

# Trials of federations that take minutes (docs/federation.md). Network namespaces need root.
federation: chromium-installed
	$(CARGO) test --release --locked -p partwise-cli --test federation -- --ignored --nocapture --test-threads 1

# Opens and refuses connections 500 times while other processes keep all cores busy, to find hangs that occur once in a
# thousand times. Without the tests that wait for deadlines.
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

# The program and the library have the same name and therefore the same page; the library's is kept.
doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --release --no-deps --locked $(PACKAGES) --lib

# With nextest if installed: it runs each test in a separate process and all of them in parallel.
unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		set -x; $(CARGO) nextest run --release $(PACKAGES) $(TESTS) --locked --test-threads $(JOBS); \
	else \
		set -x; $(CARGO) test --release $(PACKAGES) $(TESTS) --locked; \
	fi

doctest:
	$(CARGO) test --release $(PACKAGES) --exclude partwise-fuzz --doc --locked

# Against NumPy, SciPy and scikit-learn. Tests that need files of PARTWISE_DATA are skipped if it is absent.
oracle: $(VENV)/ready
	$(CARGO) build --release $(PACKAGES) $(PROGRAMS) --locked
	PARTWISE_BIN='$(BUILT)/release/partwise' \
	PARTWISE_DUMP='$(BUILT)/release/examples/dump' \
		$(PYTEST) tests/oracle bench

# The report page in headless Chromium; one instance is faster than two. PARTWISE_SCREENSHOTS=FOLDER keeps screenshots.
report: $(VENV)/ready chromium-installed
	$(CARGO) build --release $(PACKAGES) $(PROGRAMS) --locked
	PARTWISE_BIN='$(BUILT)/release/partwise' $(PYTEST) -n 0 tests/report

# In the same target folder and profile as everything else, so that dependencies are not built again.
wheel: $(VENV)/ready
	rm -rf '$(WHEELS)'
	CARGO_TARGET_DIR='$(BUILT)' $(VENV)/bin/maturin build --release --locked --out '$(WHEELS)'

# The package as users install it, from its wheel. The examples in docstrings are tests too.
python: installed
	$(PYTEST) tests/python
	$(VENV)/bin/python -m pytest -q -p no:cacheprovider --doctest-modules --pyargs partwise

installed: wheel
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall '$(WHEELS)'/*.whl

# Runs every command and snippet of the documentation with the built program and the installed package, and checks the names and
# tables in it (CONTRIBUTING.md).
docs: installed
	$(CARGO) build --release $(DOCUMENTED) $(PROGRAMS) --locked
	PARTWISE_BIN='$(BUILT)/release/partwise' PARTWISE_MPI='$(MPI)' $(PYTEST) tests/docs

# The guide as a website; `make docs` checks its links.
book: $(VENV)/ready
	$(VENV)/bin/mdbook build docs

# The package as users without a wheel build it: by pip, with only Rust installed.
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

# Every run is stored in $(BUILT)/bench, so an interrupted benchmark resumes.
bench: $(BENCH_VENV)/ready
	$(CARGO) build --release --locked -p partwise-cli
	$(BENCH_VENV)/bin/python -m pytest -q -p no:cacheprovider bench/test_times.py bench/test_report.py
	cd bench && CARGO_TARGET_DIR='$(BUILT)' .venv/bin/python -m partwise_bench $(BENCH)
	$(MAKE) bench-python

# The paper's claims on general NMF, measured: docs/performance/claims.csv.
bench-claims:
	$(CARGO) build --release --locked -p partwise-cli
	$(PYTHON) bench/claims.py '$(BUILT)/release/partwise'

# The final errors of `auto` over five seeds against those of HALS: docs/performance/seeds.csv.
bench-seeds:
	$(CARGO) build --release --locked -p partwise-cli
	$(PYTHON) bench/seeds.py '$(BUILT)/release/partwise'

# Processor time to the divergences of scikit-learn's multiplicative updates.
bench-losses: $(BENCH_VENV)/ready
	$(CARGO) build --release --locked -p partwise-cli
	$(BENCH_VENV)/bin/python bench/losses.py '$(BUILT)/release/partwise'

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

# Attack results of every protocol on four tables, in hours; resumes. docs/privacy.md has the summary.
privacy:
	$(CARGO) build --release --locked -p partwise-secure --example privacy
	'$(BUILT)/release/examples/privacy' '$(BUILT)/privacy.csv'
	'$(BUILT)/release/examples/privacy' --table '$(BUILT)/privacy.csv' > '$(BUILT)/table.csv'
	mv '$(BUILT)/table.csv' docs/privacy/table.csv
	'$(BUILT)/release/examples/privacy' --summary '$(BUILT)/privacy.csv'

bench-report: $(BENCH_VENV)/ready
	cd bench && CARGO_TARGET_DIR='$(BUILT)' .venv/bin/python -m partwise_bench $(BENCH) --part report

# The figures of the paper's Sec. 5, in $(PAPER); finished runs are kept. QUICK=1: short versions.
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

# Most of the time is spent connecting the processes.
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

# In a separate target folder, because the bindings are those of another library.
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

# Reads PARTWISE_DATA, and stores measurements in $(BUILT)/bench-plan. Nothing else should run on the machine.
bench-plan: mpi-installed
	$(CARGO) build --release -p partwise-cli --features mpi --locked
	$(PYTHON) bench/plan.py '$(BUILT)/release/partwise' '$(BUILT)/bench-plan' --report docs/performance/plan.csv

# Reads PARTWISE_DATA, and resumes from $(BUILT)/bench-network.
bench-network:
	$(CARGO) build --release -p partwise-cli --locked
	$(PYTHON) bench/network.py '$(BUILT)/release/partwise' '$(BUILT)/bench-network' --report docs/performance/network.csv

# Matrices larger than the memory limit, created and removed in FOLDER (default: the temporary folder).
bench-memory: $(VENV)/ready
	$(CARGO) build --release --locked
	$(VENV)/bin/python bench/memory.py '$(BUILT)/release/partwise' $(if $(FOLDER),--folder '$(FOLDER)')

# Not in `make test`: building cargo-deny takes minutes, and its advisories are downloaded.
deny:
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		set -x; $(CARGO) install --locked cargo-deny; \
	fi
	$(CARGO) deny check

# A reader may use 64 MiB; the rest is the fuzzer's own memory.
LIBFUZZER := -rss_limit_mb=512 -malloc_limit_mb=300 -timeout=10 -print_final_stats=1
# Findings name their lines. The quarantine of freed memory counts.
RUN_FUZZER := CARGO_PROFILE_RELEASE_DEBUG=line-tables-only ASAN_OPTIONS=quarantine_size_mb=32 $(CARGO) +nightly fuzz run --features libfuzzer

fuzz: fuzz-seeds
	$(RUN_FUZZER) $(TARGET) -- $(LIBFUZZER) -max_total_time=$(SECONDS)

# The seeds of every target, where cargo-fuzz looks for them.
fuzz-seeds:
	$(CARGO) run --release --locked -p partwise-fuzz --example seeds -- fuzz/corpus

# Without cargo-fuzz or the nightly toolchain: random changes of the seeds without coverage feedback. Overflows are findings
# too.
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
