# The Python package. It is built by its own setup.py, which calls make for the library; here it is built from what this
# configuration has made. PYTHON: the interpreter; the tests see the packages that it sees (PyTorch).

PYTHON ?= /usr/bin/python3
PYTHON_SRC := $(wildcard lib/python/*.* lib/python/src/* lib/python/shardpack/*.*)
PYTHON_VENV := $(BUILD)/python-venv
WHEELS := build/dist

$(PYTHON_VENV)/bin/python:
	$(Q)$(PYTHON) -m venv --system-site-packages $(PYTHON_VENV)

$(PYTHON_VENV)/installed: $(PYTHON_SRC) $(LIB_A) $(LIB_WORKER) $(TOOL) | $(PYTHON_VENV)/bin/python
	@echo "  PIP   lib/python"
	$(Q)SHARDPACK_BUILD=$(abspath $(BUILD)) $(PYTHON_VENV)/bin/python -m pip install -q --no-deps --no-build-isolation \
	  --no-index --disable-pip-version-check --force-reinstall ./lib/python
	$(Q)touch $@

.PHONY: python
python: $(PYTHON_VENV)/installed ## the Python package, in a virtual environment of its own: build/release/python-venv

.PHONY: wheel
wheel: $(PYTHON_SRC) | $(PYTHON_VENV)/bin/python ## the Python package as a wheel in build/dist
	$(Q)$(PYTHON_VENV)/bin/python -m pip wheel -q --no-deps --no-build-isolation --no-index --disable-pip-version-check \
	  -w $(WHEELS) ./lib/python
	@ls $(WHEELS)/*.whl
