# The front door. Everything here is thin: CMake presets build, scripts/ does the rest.
.DEFAULT_GOAL := help
SHELL := /bin/bash
JOBS ?= $(shell nproc)

# What is expensive to make is kept outside the work tree: Kubernetes, Go, lint results.
export MBCAS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mbcas
# Where setup puts a Go toolchain if the system has none that is recent enough.
export PATH := $(PATH):$(MBCAS_CACHE)/go/bin

.PHONY: help
help: ## Show this list
	@echo "MBCAS: market-based CPU allocation. On a fresh Debian 12, try: make demo"
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing (packages by name, Go if too old)
	@scripts/setup

.PHONY: build
build: setup ## Build the release binaries into build/bin
	@scripts/build release

.PHONY: demo
demo: setup ## See it work: four workloads on this machine, static limits, the market, a hog
	@scripts/build release mbcas
	@build/bin/mbcas demo
	@echo "To see it in a browser: build/bin/mbcas demo --ui"

.PHONY: check
check: ## Format, layers, and the unit tests that a change touches; under a minute
	@scripts/check

.PHONY: test
test: setup ## Everything: lint, unit, sanitizers, fuzz, real kernel, real apiserver, real node
	@scripts/test

.PHONY: soak
soak: setup ## The same suites with larger numbers; takes long
	@MBCAS_SOAK=1 scripts/test

.PHONY: test-clean
test-clean: setup ## Everything of the last commit in a fresh minimal Debian 12, without any cache
	@scripts/clean-root

.PHONY: test-versions
test-versions: build ## The integration tests on every pinned Kubernetes, 1.33 to 1.36
	@scripts/test-versions

.PHONY: test-kernels
test-kernels: build ## The kernel tests on Linux 6.12 and newer, in a virtual machine
	@scripts/build release kernel_vm_tests
	@scripts/test-kernels

.PHONY: e2e
e2e: build ## Images and manifests on a real node: install, load, upgrade, uninstall
	@test/cluster/install_test build/bin

.PHONY: images
images: build ## Build the images as archives, no engine needed; DOCKER=1 also loads them
	@scripts/images $(if $(DOCKER),--load)

.PHONY: release
release: setup ## Everything of a release into build/dist, of this commit; REGISTRY=... for its images
	@scripts/release $(if $(REGISTRY),--registry "$(REGISTRY)")

.PHONY: site
site: ## The documents as a site with search in build/site, every link checked
	@scripts/setup site
	@scripts/site

.PHONY: unit
unit: build ## Unit and property tests only; seconds
	@ctest --test-dir build/release -L unit --output-on-failure -j $(JOBS)

.PHONY: bench
bench: build ## Run the benchmarks; they print ratios
	@scripts/bench

.PHONY: pictures
pictures: build ## Draw the pictures of the documents, those of the page in Chromium
	@docs/pictures/draw build/bin/mbcas

.PHONY: evaluate
evaluate: build ## MBCAS, HPA, VPA and others on a real node: 2 hours, QUICK=1 10 minutes
	@evaluation/real/evaluate $(if $(QUICK),--quick)

.PHONY: fuzz
fuzz: setup ## Fuzz every parser, SECONDS_EACH=60 by default
	@scripts/build fuzz
	@scripts/fuzz build/fuzz $(or $(SECONDS_EACH),60)

.PHONY: lint
lint: setup ## Check format, layers, scripts and clang-tidy
	@scripts/lint

.PHONY: format
format: setup ## Format the C++ sources
	@scripts/sources cc h | xargs -r clang-format-19 -i

.PHONY: coverage
coverage: setup ## Line coverage of the unit tests
	@scripts/coverage

.PHONY: goldens
goldens: setup ## Make the golden files again that another implementation makes
	cd tools/quantity-oracle && go run . > ../../test/golden/quantity.tsv

.PHONY: cluster
cluster: setup ## Start a real Kubernetes node here; prints the KUBECONFIG line
	@tools/cluster/cluster up

.PHONY: cluster-down
cluster-down: ## Stop it and everything that a dead test left behind
	@tools/cluster/cluster down --all

.PHONY: hooks
hooks: ## Check format and lint before every commit in this clone
	git config core.hooksPath scripts/hooks

.PHONY: clean
clean: ## Remove the build trees (the cache stays)
	rm -rf build
