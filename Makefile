# Short names for CMake presets and scripts; see `make help`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := release

JOBS ?= $(shell nproc)
# All but the unit tests measure time on a live kernel, so by default those run one after the other.
TEST_JOBS ?= 1
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 10
RUN_CLANG_TIDY ?= $(firstword $(shell command -v run-clang-tidy-19 run-clang-tidy))
CLANG_FORMAT ?= clang-format

SOURCES = git ls-files -z -- '*.cpp' '*.h'

say = @printf '\n== %s\n' "$(1)"

.PHONY: release
release: ## build the release preset (the default)
	@scripts/install-deps --check --only build
	$(call say,building assay (preset release))
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)
	@echo "built: build/release/src/assay"

.PHONY: deps
deps: ## install the packages that build, tests and benchmarks want
	@scripts/install-deps

.PHONY: deps-build
deps-build:
	@scripts/install-deps --only build

.PHONY: demo
demo: deps-build release ## profile the lab's media server under load, print the report
	@scripts/demo

.PHONY: test
test: deps release ## build, then run every test
	$(call say,running the unit tests (ctest in build/release, $(JOBS) at a time))
	@ctest --test-dir build/release -L unit --output-on-failure -j $(JOBS)
	$(call say,running the other tests ($(TEST_JOBS) at a time))
	@ctest --test-dir build/release -LE unit --output-on-failure -j $(TEST_JOBS)

.PHONY: test-asan
test-asan: deps-build ## unit tests under AddressSanitizer and UBSan
	$(call say,building the unit tests with ASan and UBSan (preset asan-ubsan))
	@cmake --preset asan-ubsan
	@cmake --build --preset asan-ubsan --target unit_tests -j $(JOBS)
	$(call say,running the unit tests with ASan and UBSan)
	@ctest --test-dir build/asan-ubsan -L unit --output-on-failure -j $(JOBS)

.PHONY: fuzz
fuzz: deps-build ## every reader fuzzed by libFuzzer, FUZZ_SECONDS (10) each; FUZZ="symbol_elf_fuzz" for some of them
	@scripts/install-deps --only fuzz
	$(call say,building the fuzz targets with libFuzzer (preset fuzz))
	@cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

.PHONY: test-tsan
test-tsan: deps-build ## unit tests of what runs inside targets and of a recorder's threads, under ThreadSanitizer
	$(call say,building the tests of inject/ and of the recorder's threads with TSan (preset tsan))
	@cmake --preset tsan
	@cmake --build --preset tsan --target inject_test inproc_test recorder_threads_test -j $(JOBS)
	$(call say,running the tests of inject/ and of the recorder's threads with TSan)
	@build/tsan/tests/recorder_threads_test
	@build/tsan/inject/preload/inject_test
	@build/tsan/inject/inproc/inproc_test

.PHONY: bench
bench: deps release ## overhead side by side with perf and bpftrace (BENCH="--rounds 10 --only redis")
	$(call say,measuring overhead)
	@bench/overhead $(BENCH)

.PHONY: bench-load
bench-load: deps release ## load side by side with wrk and h2load (BENCH="--rounds 10")
	@bench/load $(BENCH)

.PHONY: format
format: ## rewrite every C++ file in the house style
	@$(SOURCES) | xargs -0 $(CLANG_FORMAT) -i
	@git status --short

.PHONY: lint
lint: ## clang-tidy over src/, lab/ and tests/, as compile_commands.json has them
	@scripts/install-deps --only build --only tools
	@cmake --preset release
	$(call say,clang-tidy)
	@"$(RUN_CLANG_TIDY)" -quiet -j $(JOBS) -p build/release '^$(CURDIR)/(src|lab|tests)/'

.PHONY: install
install: release ## install to PREFIX (default /usr/local); DESTDIR is honoured
	@cmake --install build/release --prefix "$(PREFIX)"

.PHONY: clean
clean: ## remove build/
	@rm -rf build

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
