# JPEG of every kind, decoded by us and by libjpeg-turbo: make check-jpeg [DATA=folder] [COUNT=n] [EVERY=1] [KIND=part]

IDENTITY := $(BUILD)/tests/jpeg/identity
IDENTITY_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/jpeg/*.c))
$(IDENTITY_OBJ): ALL_CPPFLAGS += -D_GNU_SOURCE

$(IDENTITY): $(IDENTITY_OBJ) $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $^ $(ALL_LDFLAGS) $(PKG_LIBS)

.PHONY: check-jpeg
check-jpeg: $(IDENTITY) $(MAKE_PHOTOS) ## JPEG of every kind against libjpeg-turbo; DATA=folder, COUNT=images, EVERY=1
	@IDENTITY=$(IDENTITY) MAKE_PHOTOS=$(MAKE_PHOTOS) BUILD_DIR=$(BUILD) \
	  EVERY=$(EVERY) KIND=$(KIND) tests/jpeg/run $(DATA) $(COUNT)
