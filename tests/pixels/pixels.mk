# Comparison of the pixel path with Pillow: make check-pixels [DATA=folder] [COUNT=n]

RENDER_ONE := $(BUILD)/tests/pixels/render_one

$(RENDER_ONE): %: %.o $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

.PHONY: check-pixels
check-pixels: $(RENDER_ONE) $(MAKE_PHOTOS) ## the pixels of images against Pillow's; DATA=folder, COUNT=images
	@RENDER_ONE=$(RENDER_ONE) MAKE_PHOTOS=$(MAKE_PHOTOS) /usr/bin/python3 tests/pixels/compare.py $(DATA) $(COUNT)
