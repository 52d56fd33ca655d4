# Quality and cost of the epoch's order: format-spec/epoch-order.md sections 15 and 16. Never part of the tests.

ORDER_SRC := $(sort $(wildcard tests/order/*.c))
ORDER_BIN := $(ORDER_SRC:%.c=$(BUILD)/%)

$(ORDER_BIN): %: %.o $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

.PHONY: order-quality
order-quality: $(ORDER_BIN) ## shuffle quality beside a full shuffle, and what starting an epoch costs
	@$(BUILD)/tests/order/start_cost
	@python3 tests/order/quality.py $(BUILD)/tests/order/plan_dump
