# The project's own commands. A user's project needs only `precast` or `scons`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all soak lint clean venv device-kit

venv: $(STAMP)

# The Python extension is built with the package, so its sources count too.
$(STAMP): pyproject.toml setup.py $(wildcard toolchain/precast/launch/runtime/* toolchain/precast/launch/extension/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all,test]'
	touch $@

demo: venv
	$(BIN)/precast build
	$(BIN)/python tests/demo.py

test: venv lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not all and not soak'

test-all: venv
	$(BIN)/python -m pytest -n 2 --dist loadfile -m all

soak: venv
	$(BIN)/python -m pytest -m soak

lint: venv
	$(BIN)/ruff check .
	$(BIN)/mypy

device-kit: venv
	$(BIN)/python tests/device/make_kit.py

clean:
	rm -rf build generated/*/ .sconsign.dblite
