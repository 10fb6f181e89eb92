# `make` alone prints this help. verify is everything CI checks besides the tests.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools are pinned here and run from their modules; nothing is installed.
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
HOMEOSTAT     := go run ./cmd/homeostat
# The plane that tests share; `homeostat down test` ends it.
TEST_PLANE    := test
# Packages of the nested module that compile without Kubernetes.
LOCALPLANE    := $$(go -C localplane list ./... | grep -v -E '/cmd/(etcd|kube-|kubectl|kwok)')

.PHONY: help
help: ## Print this help.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: plane ## Run all tests, against a control plane that goes down afterwards.
	@trap 'echo "--- stop the test plane" >&2; $(HOMEOSTAT) down $(TEST_PLANE) >&2 || true' EXIT; \
	echo "--- tests" >&2; go test -timeout 20m ./...; \
	echo "--- tests of localplane" >&2; go -C localplane test -timeout 10m $(LOCALPLANE)

.PHONY: plane
plane: # Build the control plane and start it, showing progress; go test would hide it.
	@[ -n "$${HOMEOSTAT_TEST_KUBECONFIG:-}" ] || { echo "--- control plane for the tests" >&2; $(HOMEOSTAT) up $(TEST_PLANE) --audit >&2; }

.PHONY: unit
unit: ## Run the tests that need no control plane.
	go test -short ./...

.PHONY: race
race: ## Run the tests without a control plane under the race detector.
	go test -short -race ./engine/... ./operator/... ./sim/... ./internal/...

.PHONY: verify
verify: format vet lint fresh layers ## Check everything that CI checks besides the tests.

.PHONY: format
format: # Fail when a file is not formatted.
	@echo "--- gofmt" >&2; files=$$(gofmt -l .); \
	if [ -n "$$files" ]; then printf 'gofmt -w is due:\n%s\n' "$$files" >&2; exit 1; fi

.PHONY: vet
vet: # Vet both modules.
	@echo "--- go vet" >&2; go vet ./...; go -C localplane vet $(LOCALPLANE)

.PHONY: lint
lint: ## Run the pinned linters.
	@echo "--- golangci-lint" >&2; $(GOLANGCI_LINT) run ./...

.PHONY: generate
generate: ## Write definitions and deep copies anew from the Go types.
	go generate ./...

.PHONY: fresh
fresh: # Generate in a copy of the tree and compare.
	@echo "--- generated files" >&2; copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
	git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do if [ -e "$$f" ]; then printf '%s\0' "$$f"; fi; done \
		| tar --null --files-from=- -cf - | tar -xf - -C "$$copy"; \
	(cd "$$copy" && go generate ./...); \
	git ls-files --cached --others --exclude-standard | { grep -E '(zz_generated\..*\.go|/v[0-9a-z]+/[^/]*_[^/]*\.yaml)$$' || true; } | while read -r f; do \
		diff -u "$$f" "$$copy/$$f" || { echo "$$f is not what its sources say: run make generate" >&2; exit 1; }; done

.PHONY: layers
layers: # Imports, package comments and the directory map.
	@echo "--- layers" >&2; go test ./test/layers

.PHONY: demo
demo: ## Show operators at work on a local control plane.
	$(HOMEOSTAT) demo

.PHONY: bench
bench: ## Measure the engine against bare requests and a reconciler by hand; writes docs/benchmark.md.
	go run ./test/bench

.PHONY: build
build: ## Build bin/homeostat.
	go build -trimpath -o bin/homeostat ./cmd/homeostat

.PHONY: clean
clean: ## Stop the planes of tests and demo and remove what was built here.
	-$(HOMEOSTAT) down $(TEST_PLANE)
	-$(HOMEOSTAT) down demo
	rm -rf bin dist
