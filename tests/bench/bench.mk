# Speed and memory against targets: README.md of this folder. Never part of the tests.

BENCH_SRC := $(sort $(wildcard tests/bench/*.c))
BENCH_BIN := $(BENCH_SRC:%.c=$(BUILD)/%)

$(BENCH_BIN): %: %.o $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

include tests/bench/load/load.mk

.PHONY: bench-programs
bench-programs: $(TOOL) $(LIB_WORKER) $(BENCH_BIN) $(LOAD_BENCH_BIN) $(PYTHON_INSTALLED)

# Variables of the command line reach the program as environment.
.PHONY: bench
bench: ## speed and memory; ONLY=pack,load,peers CORPUS=folder ROUNDS=5 QUICK=1 STRICT=1 WORK=folder
	@tests/setup.sh build test
	@$(submake) bench-programs
	@SHARDPACK=$(TOOL) PYTHON_TESTS=$(abspath $(PYTHON_VENV)/bin/python) BUILD_DIR=$(BUILD) tests/bench/run
