# Programs that measure the loader: README.md of this folder.

LOAD_BENCH_DIR := $(BUILD)/tests/bench/load
LOAD_BENCH_BIN := $(LOAD_BENCH_DIR)/load_bench $(LOAD_BENCH_DIR)/bare_decode

$(LOAD_BENCH_DIR)/load_bench: $(LOAD_BENCH_DIR)/children.o
$(LOAD_BENCH_BIN): %: %.o $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $(filter %.o,$^) $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)
