# The library: static and shared. Every .c file of a layer's folder belongs to it.

LIB_LAYERS := base io plan coef image shard dataset pack load
# Programs of their own among them.
LIB_MAINS := lib/load/worker_main.c
LIB_SRC := $(filter-out $(LIB_MAINS),$(sort $(foreach d,$(LIB_LAYERS),$(wildcard lib/$(d)/*.c))))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
LIB_A := $(BUILD)/libshardpack.a
LIB_SO := $(BUILD)/libshardpack.so.$(SOVERSION)
LIB_PC := $(BUILD)/shardpack.pc
# The loader's worker processes; the library looks for it beside itself and in ../libexec/shardpack.
LIB_WORKER := $(BUILD)/shardpack-worker
libexecdir ?= $(prefix)/libexec
PUBLIC_HEADERS := $(wildcard lib/include/*.h lib/include/shardpack/*.h)

.PHONY: lib
lib: $(LIB_A) $(LIB_SO) $(LIB_PC) $(LIB_WORKER) ## build libshardpack.a, libshardpack.so, shardpack.pc, shardpack-worker

$(LIB_A): $(LIB_OBJ)
	@$(if $(filter 1,$(V)),,echo "  AR    $@")
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(LIB_SO): $(LIB_OBJ) lib/shardpack.map
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -shared -Wl,-soname,libshardpack.so.$(SOVERSION) -Wl,--version-script=lib/shardpack.map \
	  $(if $(filter release debug,$(CONFIG)),-Wl$(comma)-z$(comma)defs) -o $@ $(LIB_OBJ) $(ALL_LDFLAGS) $(PKG_LIBS)
	$(Q)ln -sf libshardpack.so.$(SOVERSION) $(BUILD)/libshardpack.so

$(LIB_WORKER): $(LIB_MAINS:%.c=$(BUILD)/%.o) $(LIB_A)
	@$(if $(filter 1,$(V)),,echo "  LD    $@")
	$(Q)$(CC) -o $@ $< $(LIB_A) $(ALL_LDFLAGS) $(PKG_LIBS)

comma := ,

# Written anew whenever its content would differ: prefix and libdir may change from one call of make to the next.
.PHONY: force
$(LIB_PC): lib/shardpack.pc.in lib/include/shardpack/types.h force
	@mkdir -p $(@D)
	@sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' \
	  -e 's|@version@|$(VERSION)|' -e 's|@packages@|$(PACKAGES)|' lib/shardpack.pc.in > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

.PHONY: install-lib
install-lib: lib
	install -d $(DESTDIR)$(libdir)/pkgconfig $(DESTDIR)$(includedir)/shardpack $(DESTDIR)$(libexecdir)/shardpack
	install -m 644 $(LIB_A) $(DESTDIR)$(libdir)/libshardpack.a
	install -m 755 $(LIB_SO) $(DESTDIR)$(libdir)/libshardpack.so.$(SOVERSION)
	ln -sf libshardpack.so.$(SOVERSION) $(DESTDIR)$(libdir)/libshardpack.so
	install -m 755 $(LIB_WORKER) $(DESTDIR)$(libexecdir)/shardpack/shardpack-worker
	install -m 644 $(LIB_PC) $(DESTDIR)$(libdir)/pkgconfig/shardpack.pc
	install -m 644 lib/include/shardpack.h $(DESTDIR)$(includedir)/
	install -m 644 $(wildcard lib/include/shardpack/*.h) $(DESTDIR)$(includedir)/shardpack/

.PHONY: uninstall-lib
uninstall-lib:
	rm -f $(DESTDIR)$(libdir)/libshardpack.a $(DESTDIR)$(libdir)/libshardpack.so.$(SOVERSION) \
	  $(DESTDIR)$(libdir)/libshardpack.so $(DESTDIR)$(libdir)/pkgconfig/shardpack.pc $(DESTDIR)$(includedir)/shardpack.h
	rm -rf $(DESTDIR)$(includedir)/shardpack $(DESTDIR)$(libexecdir)/shardpack
