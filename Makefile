PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint grid clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt $(wildcard workbench/native/*.cpp workbench/native/*.h)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	rm -rf demo-output
	$(BIN)/workbench demo --out demo-output

test: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

grid: setup
	$(BIN)/workbench grid --out checkpoints --jobs 2

clean:
	rm -rf .venv demo-output results exports build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
