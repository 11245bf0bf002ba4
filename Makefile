# Everything runs in a virtual environment beside this file. PYTHON may name another CPython >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS := 60
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: serve test test-all test-fronts check check-worker coverage conformance soak fuzz bench-overhead bench-sleeping bench-graph wheel docs pictures clean help

help:
	@echo "make serve            serve examples/digits on http://127.0.0.1:8080"
	@echo "make test             checks and quick tests: ten minutes on two cores, after a small installation"
	@echo "make test-all         these, and the rest: frameworks, Ray, browsers, other CPythons, every block of the pages"
	@echo "make test-fronts      the whole suite once more, with servers of two fronts"
	@echo "make check            ruff, mypy, where our longest files and functions stand, and how the pages read"
	@echo "make check-worker     the types of the worker as CPython 3.8 has them"
	@echo "make coverage         the tests again, with the branches of src/ they take: at least 90 % "
	@echo "make conformance      the tests of what the platforms' documents promise, and docs/reference/conformance.md from them"
	@echo "make soak             tests with their full counts, for hours; goes on where it was stopped. AGAIN=1 begins anew"
	@echo "make fuzz             each fuzz target for SECONDS=60, or TARGET=http_head alone"
	@echo "make bench-overhead   what a request costs, beside a bare server and mosec"
	@echo "make bench-sleeping   how much of a script's own speed is left with large bodies"
	@echo "make bench-graph      what MegFlow graphs cost, beside bare threads and the plain dialect"
	@echo "make wheel            build the wheel"
	@echo "make docs             the site of docs/, in build/site; a broken link or a missing page fails"
	@echo "make pictures         take the pictures of the documents anew; needs Chromium"

# Debian's python3 comes without what makes environments. A failed attempt leaves a python behind that would pass for one.
$(BIN)/python:
	@tests/support/venv.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.served: pyproject.toml examples/digits/requirements.txt | $(BIN)/python
	$(PIP) install -e ".[onnx]"
	@touch $@

$(VENV)/.tested: pyproject.toml $(VENV)/.served
	$(PIP) install -e ".[onnx,otel,test]"
	@touch $@

$(VENV)/.tested-all: pyproject.toml tests/requirements-all.txt $(VENV)/.tested
	$(PIP) install -e ".[onnx,otel,docs,test]"
	$(PIP) install -r tests/requirements-all.txt
	$(PIP) install --no-deps torchvision==0.28.0 tf-keras==2.21.*
	$(PIP) install --no-deps axe-playwright-python==0.1.8
	@touch $@

$(VENV)/.fuzzed: $(VENV)/.tested
	$(PIP) install "atheris>=3"
	@touch $@

serve: $(VENV)/.served
	$(BIN)/panglot serve examples/digits

check: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/sizes.py
	$(BIN)/python tests/prose.py

test: check
	$(BIN)/python tests/support/programs.py quick
	$(BIN)/python tests/all.py quick

# The last mypy that knows CPython 3.8, which no environment with a newer one can have.
$(VENV)/worker-types/.made: | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/worker-types
	$(VENV)/worker-types/bin/python -m pip --disable-pip-version-check -q install mypy==1.14.1
	@touch $@

check-worker: $(VENV)/worker-types/.made
	$(VENV)/worker-types/bin/mypy --config-file tests/worker-types.ini --cache-dir .mypy_cache/worker

test-all: test check-worker $(VENV)/.tested-all
	$(BIN)/python tests/support/programs.py quick rest
	$(BIN)/python tests/all.py rest
	TEST_FRONTS=2 $(BIN)/python tests/all.py fronts

test-fronts: $(VENV)/.tested-all
	$(BIN)/python tests/support/programs.py quick rest
	TEST_FRONTS=2 $(BIN)/python tests/all.py all

fuzz: $(VENV)/.fuzzed
	$(BIN)/python tests/fuzz/run.py $(SECONDS) $(TARGET)

coverage: $(VENV)/.tested-all
	$(BIN)/coverage erase
	$(BIN)/coverage run tests/all.py all
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

conformance: $(VENV)/.tested-all
	-$(BIN)/python -m pytest -n 2 --dist worksteal -m document
	$(BIN)/python tests/conformance/write.py

soak: $(VENV)/.tested-all
	$(BIN)/python tests/soak.py $(if $(AGAIN),--again)

bench-overhead: $(VENV)/.served
	$(BIN)/python benchmarks/overhead/run.py

bench-sleeping: $(VENV)/.served
	$(BIN)/python benchmarks/sleeping/run.py

bench-graph: $(VENV)/.tested-all
	$(BIN)/python benchmarks/graph

wheel: $(BIN)/python
	@rm -rf build
	$(PIP) wheel --no-deps --wheel-dir dist .

$(VENV)/.documented: pyproject.toml $(VENV)/.served
	$(PIP) install -e ".[docs]"
	@touch $@

docs: $(VENV)/.documented
	$(BIN)/python docs/site/reference.py
	$(BIN)/python docs/pictures/terminal.py
	$(BIN)/python docs/pictures/drawing.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build  # with -q a broken link would pass

pictures: $(VENV)/.tested-all
	$(BIN)/python docs/pictures/take.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .fuzz benchmarks/.venv-* src/*.egg-info
