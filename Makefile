# `make demo` shows the tool at work; `make test` is what CI runs. Both need only Python 3.11+, make and a package index.

VENV ?= .venv
# The interpreter that VENV is made with; left empty, one that runs is looked for.
PYTHON ?=
# One file to a worker: what its tests share (a built wheel, compiled programs) is made once.
PYTEST_FLAGS ?= -n auto --dist loadfile

BIN = $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test fast lint pytest clean

help:
	@echo "make demo   real weights, placed on 6 devices, generating text, and fine-tuned"
	@echo "make test   lint, types, import contracts and all tests"
	@echo "make fast   the same without the slow tests"

demo: $(VENV)/demo.stamp
	$(BIN)/sharddsl show model=smollm2_135m spec=llama/fsdp_tp spec.mesh.fsdp=2 spec.mesh.mp=3
	$(BIN)/sharddsl generate model=smollm2_135m spec=llama/fsdp_tp spec.mesh.fsdp=2 spec.mesh.mp=3 \
	  --prompt "In two sentences: why is the sky blue?"
	$(BIN)/sharddsl train model=smollm2_135m spec=llama/fsdp spec.mesh.fsdp=4 data=demo \
	  run.steps=4 run.batch=4 run.seq=32 run.precision=f32

test: lint pytest

fast: lint
	$(BIN)/python -m pytest $(PYTEST_FLAGS) -m "not slow"

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

pytest: $(VENV)/test.stamp
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

clean:
	rm -rf $(VENV) dist build

$(VENV)/demo.stamp: pyproject.toml $(wildcard constraints/*.txt)
	@$(call install,.)
	@touch $@

$(VENV)/test.stamp: pyproject.toml $(wildcard constraints/*.txt)
	@$(call install,.[test])
	@touch $@ $(VENV)/demo.stamp

# Makes VENV where it is missing and installs the project there, editable, at the versions that it was tested with. Of
# pip's output, the name of each download is shown.
define install
	if [ ! -x $(BIN)/python ]; then \
	  python="$(PYTHON)"; [ -n "$$python" ] || python=$$(.ci/find-python 3.13 3.12 3.11) || exit 1; \
	  echo "making $(VENV) with $$("$$python" -V), $$python"; "$$python" -m venv $(VENV) || exit 1; \
	fi; \
	pins=constraints/$$($(BIN)/python -c 'import sys; print("py311" if sys.version_info < (3, 12) else "py313")').txt; \
	echo "installing $(1) into $(VENV), versions from $$pins"; \
	{ PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
	    $(BIN)/python -m pip install --progress-bar off -c $$pins -e '$(1)'; echo $$? >$(VENV)/pip.status; } \
	  | sed -n -e 's/^ *Downloading \([^ ]*\) /  downloading \1 /p' -e '/^Successfully/s/\(.\{100\}\).*/\1 …/p'; \
	exit $$(cat $(VENV)/pip.status)
endef
