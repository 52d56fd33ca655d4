# Examples: one program per examples/*.c. They see the public headers only.

EXAMPLE_SRC := $(sort $(wildcard examples/*.c))
EXAMPLE_BIN := $(EXAMPLE_SRC:%.c=$(BUILD)/%)
MAKE_PHOTOS := $(BUILD)/examples/make_photos
# A program finds the loader's workers beside itself.
EXAMPLE_WORKER := $(BUILD)/examples/shardpack-worker

.PHONY: examples
examples: $(EXAMPLE_BIN) ## build the example programs

$(EXAMPLE_BIN): %: %.o $(LIB_A) | $(EXAMPLE_WORKER)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

$(EXAMPLE_WORKER): | $(LIB_WORKER)
	@mkdir -p $(@D)
	$(Q)ln -sf ../shardpack-worker $@
