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
export PARTWISE_DATA ?= $(CURDIR)/../shared/data

# Its own target folder may be given to Cargo in the environment.
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help test test-all fmt fmt-check clippy doc unit doctest oracle deny clean

help:
	@echo 'make test      format, lints, docs, unit, property, command-line, documentation and oracle tests'
	@echo 'make test-all  the same, and deny'
	@echo 'make deny      licences, advisories and sources of the dependencies; builds cargo-deny if it is missing'
	@echo 'make fmt       format the code'
	@echo 'make doc       the documentation of the library, in $(TARGET)/doc'
	@echo 'make clean     remove what was built, the Python environment too'

test: fmt-check clippy doc unit doctest oracle

test-all: test deny

fmt:
	$(CARGO) fmt --all

fmt-check:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --release --workspace --all-targets --locked -- -D warnings

# The program and the library have the same name, and so the same page; the library's is the one to read.
doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --release --no-deps --locked -p partwise

# nextest where it is installed: it runs each test in a process of its own and all of them at once.
unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		set -x; $(CARGO) nextest run --release --workspace --all-targets --locked; \
	else \
		set -x; $(CARGO) test --release --workspace --all-targets --locked; \
	fi

doctest:
	$(CARGO) test --release --workspace --doc --locked

# Against NumPy, SciPy and scikit-learn, with the program that the other tests built: the same targets, so that
# nothing is compiled again. Tests that need files of PARTWISE_DATA skip themselves where it is absent.
oracle: $(VENV)/ready
	$(CARGO) build --release --workspace --all-targets --locked
	PARTWISE_BIN='$(abspath $(TARGET))/release/partwise' \
	PARTWISE_DUMP='$(abspath $(TARGET))/release/examples/dump' \
		$(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider tests/oracle

$(VENV)/ready: tests/oracle/requirements.txt
	@if ! $(PYTHON) -c 'import ensurepip, venv' >/dev/null 2>&1; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -y -qq python3 python3-venv; \
		else \
			echo 'The oracle tests need Python 3 with its venv module: install python3 and python3-venv, then make test again.' >&2; \
			exit 1; \
		fi; \
	fi
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/oracle/requirements.txt
	@touch $@

# Not in `make test`: building cargo-deny takes minutes, and its advisories come over the network.
deny:
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		set -x; $(CARGO) install --locked cargo-deny; \
	fi
	$(CARGO) deny check

clean:
	$(CARGO) clean
	rm -rf $(VENV)
