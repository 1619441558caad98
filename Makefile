# The project's own commands. A user's project needs only `precast` or `scons`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The second tier has an environment of its own: it has PyTorch, which the first tier is to do without.
VENV_ALL ?= $(VENV)-all
STAMP_ALL := $(VENV_ALL)/.installed
# Tests wait a quarter of their time, for processes, clocks and disks: three at once keep two cores busy.
AT_ONCE ?= 3
PYTEST := -m pytest -n $(AT_ONCE) --dist loadfile --no-loadscope-reorder
# The Python extension is built with the package, so its sources count too.
INSTALLED := pyproject.toml setup.py $(wildcard toolchain/precast/launch/runtime/* toolchain/precast/launch/extension/* toolchain/precast/recording/extension/*)

.PHONY: demo test test-all soak lint clean venv device-kit

venv: $(STAMP)

$(STAMP): EXTRAS := all,test
$(STAMP_ALL): EXTRAS := all,test,interop,zig
$(STAMP) $(STAMP_ALL): $(INSTALLED)
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	touch $@

demo: venv
	$(BIN)/precast build
	$(BIN)/python tests/demo.py

test: venv lint
	$(BIN)/python $(PYTEST) -m 'not all and not soak'

test-all: $(STAMP_ALL)
	PRECAST_INTEROP=1 $(VENV_ALL)/bin/python $(PYTEST) -m all

soak: venv
	$(BIN)/python -m pytest -m soak

lint: venv
	$(BIN)/ruff check .
	$(BIN)/mypy

device-kit: venv
	$(BIN)/python tests/device/make_kit.py

clean:
	rm -rf build generated/*/ .sconsign.dblite
