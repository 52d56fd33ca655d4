# shardpack: `make help` lists the targets. Lists of files live in lib/lib.mk, tools/tools.mk, examples/examples.mk and
# tests/tests.mk.
#
# CONFIG=release|debug|asan|tsan|fuzz picks the flags; each has its own folder under build/. V=1 shows the commands.
# CC, CFLAGS, CPPFLAGS, LDFLAGS are the user's and come last.

CONFIG ?= release
BUILD ?= build/$(CONFIG)
V ?= 0
Q := $(if $(filter 1,$(V)),,@)
# Folder of another configuration, also when BUILD was given.
build_of = $(if $(filter command environment,$(word 1,$(origin BUILD))),$(BUILD)-$(1),build/$(1))
# For recipes that call make again: use all cores unless -j was given.
parallel = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
submake = $(MAKE) --no-print-directory $(parallel)

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man
datadir ?= $(prefix)/share
DESTDIR ?=

VERSION := $(shell sed -n 's/^\#define SPK_VERSION_STRING "\(.*\)"/\1/p' lib/include/shardpack/types.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

PACKAGES := libcurl libzstd libarchive libjpeg libpng libcrypto libxxhash jansson
PKG_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)
# Targets that install what is missing and call make again, or need nothing.
NO_PACKAGES := setup demo test check-long fuzz clean help dist uninstall uninstall-lib uninstall-tools
ifeq ($(strip $(PKG_LIBS)),)
ifneq ($(if $(MAKECMDGOALS),$(filter-out $(NO_PACKAGES),$(MAKECMDGOALS)),all),)
$(error libraries are missing ($(PACKAGES)): run `make setup` first, or see tests/packages.txt)
endif
endif

WARN := -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
        -Wwrite-strings -Wundef -Wpointer-arith -Wcast-qual -Wformat=2 $(if $(DEVELOPER),-Werror)
OPT_release := -O2 -g -DNDEBUG
OPT_debug := -O0 -g3
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_tsan := -O1 -g -fsanitize=thread
OPT_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT := $(OPT_$(CONFIG))
$(if $(OPT),,$(error CONFIG=$(CONFIG) is none of release, debug, asan, tsan, fuzz))
ifeq ($(CONFIG),fuzz)
CC := clang
endif

ALL_CPPFLAGS = -Ilib -Ilib/include -D_FILE_OFFSET_BITS=64 -D_POSIX_C_SOURCE=200809L $(PKG_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS = -std=c11 -ffp-contract=off -fPIC -fvisibility=hidden -pthread $(WARN) $(OPT) $(CFLAGS)
ALL_LDFLAGS = -pthread -lm $(OPT) $(LDFLAGS)

.PHONY: all
all: lib tools ## build the library and the command (default)

include lib/lib.mk
include tools/tools.mk
include examples/examples.mk
-include lib/python/python.mk
include tests/tests.mk

.PHONY: install
install: install-lib install-tools ## install under DESTDIR and prefix

.PHONY: uninstall
uninstall: uninstall-lib uninstall-tools ## remove what install put there

.PHONY: dist
dist: ## the committed tree as build/shardpack-VERSION.tar.gz
	@mkdir -p build
	git archive --format=tar.gz -9 --prefix=shardpack-$(VERSION)/ -o build/dist.tmp HEAD
	@mv build/dist.tmp build/shardpack-$(VERSION).tar.gz
	@ls -l build/shardpack-$(VERSION).tar.gz

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@$(if $(filter 1,$(V)),,echo "  CC    $<")
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

.PHONY: obj
obj: $(patsubst %.c,$(BUILD)/%.o,$(FILES)) ## compile FILES="a.c b.c" only

# For what links the static library by itself, such as the Python package.
.PHONY: print-libs
print-libs:
	@echo $(PKG_LIBS)

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z][a-z0-9_-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(filter %Makefile %.mk,$(MAKEFILE_LIST)) | sort | expand -t 24
	@echo "  CONFIG=release|debug|asan|tsan   V=1   DEVELOPER=1 (warnings are errors)   DESTDIR= prefix="
