# HyperFleet's target names; what they do is in cargo and xtask.

VERSION        ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0)
COMMIT         ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
BUILD_DATE     ?= $(shell date -u +%Y-%m-%dT%H:%M:%SZ)
CONTAINER_TOOL ?= $(shell command -v podman 2>/dev/null || command -v docker 2>/dev/null || echo podman)
IMAGE_REGISTRY ?= quay.io/openshift-hyperfleet
IMAGE_NAME     ?= pull-secret
IMAGE_TAG      ?= $(VERSION)
QUAY_USER      ?=
DEV_TAG        ?= dev-$(COMMIT)
STORE          ?= google
STORES         ?= aws azure google vault
of_stores       = --no-default-features $(addprefix --features pull-secret/,$(STORES))
of_build        = VERSION=$(VERSION) COMMIT=$(COMMIT) BUILD_DATE=$(BUILD_DATE)

# The real part of a demo's secret store; the emulators of Google's and Azure's need none.
demo_with_vault = hack/real-parts/with.sh openbao -- sh -c \
  'VAULT_ADDR=$$REAL_OPENBAO_ADDR VAULT_TOKEN_FILE=$$REAL_OPENBAO_TOKEN_FILE exec "$$@"' demo
demo_with_aws   = hack/real-parts/with.sh moto -- sh -c 'AWS_REGION=eu-central-1 AWS_EC2_METADATA_DISABLED=true \
  AWS_ENDPOINT_URL_SECRETS_MANAGER=$$REAL_MOTO_ADDR AWS_SHARED_CREDENTIALS_FILE=$$REAL_MOTO_CREDENTIALS exec "$$@"' demo

.DEFAULT_GOAL := help
.PHONY: help build test lint deploy fmt demo demo-credentials real-parts bench fuzz install binary image image-push image-dev images images-push image-archives clean tests-a-to-o tests-p-to-z tests-of-chaos

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Build, and walk one cluster through its life on a whole fleet plane; STORE=vault, aws and azure get and use an OpenBao, moto and an emulator
	cargo build --locked --package pull-secret --package pull-secret-local
	$(demo_with_$(STORE)) target/debug/pull-secret local demo --store $(STORE)

demo-credentials: ## Build, and walk one cluster through its accounts at a registry: made, replaced, retired, revoked; gets a real registry and skopeo
	cargo build --locked --package pull-secret --package pull-secret-local
	hack/real-parts/with.sh registry -- target/debug/pull-secret local demo credentials

test: ## Run the test suite; with CI=true the real parts are got first and must be there
	@if [ "$(CI)" = true ]; then $(MAKE) --no-print-directory real-parts; else cargo test --locked --workspace; fi

# Two lanes at a time, since tests at real parts mostly wait: each has parts of its own, which its tests may take away. The patterns
# are each other's complement, so that a new test is in one of them.
real-parts: ## Get the real parts that tests are held to, and run the test suite on them
	hack/real-parts/google-clients.sh
	hack/real-parts/azure-clients.sh
	hack/real-parts/go-clients.sh
	cargo test --locked --workspace --no-run
	$(MAKE) --no-print-directory --jobs 2 --keep-going tests-a-to-o tests-p-to-z
	$(MAKE) --no-print-directory tests-of-chaos

with_parts = hack/real-parts/with.sh kubernetes postgresql rabbitmq openbao moto pubsub systemd node
all_tests  = env --unset=MAKEFLAGS hack/in-own-tmp.sh cargo test --locked --workspace --no-fail-fast

tests-a-to-o:
	$(with_parts) schemathesis -- $(all_tests) --lib --bins --test '[!p-z]*' -- --skip whatever_is_killed
	$(all_tests) --doc
tests-p-to-z:
	$(with_parts) chromium registry helm crds promtool opentelemetry-collector oauth2-proxy -- $(all_tests) --test '[p-z]*'

# It leaves nothing of the machine to others, so it comes after them.
tests-of-chaos:
	hack/real-parts/with.sh kubernetes postgresql rabbitmq -- $(all_tests) --test chaos

build: ## Leave release binaries in target/release, those of nodes in target/node; STORES=aws: for the named secret stores only
	$(of_build) cargo build --locked --release --package pull-secret --package global-pull-secret $(of_stores)
	$(of_build) cargo build --locked --profile node --package sync-global-pullsecret --package keyless-credential-provider

lint: ## Check laws, generated pages, format, lints, docs and dependencies
	cargo xtask ci

deploy: ## Render deploy/ from the charts
	hack/render-deploy.sh

fmt: ## Format the code and write the generated pages
	cargo fmt --all
	cargo xtask gen

BENCHES := parse job burst api preconditions sentinel nodes rotation syncer keyless
.PHONY: $(addprefix bench-,$(BENCHES)) bench-programs

bench: $(addprefix bench-,$(or $(BENCH),$(BENCHES))) ## Measure against baselines in the same run; BENCH=api measures the API alone

bench-parse:
	cargo bench --locked --package docker-config --bench parse
bench-programs:
	cargo build --locked --release --package pull-secret --package pull-secret-local
bench-job: bench-programs
	cargo bench --locked --package bench --bench job
bench-burst: bench-programs
	hack/real-parts/with.sh rabbitmq -- cargo bench --locked --package bench --bench burst
bench-api: # with the memory that PostgreSQL's manual advises, for the baseline too
	REAL_POSTGRESQL_SHARED_BUFFERS=2GB hack/real-parts/with.sh postgresql -- cargo bench --locked --package hyperfleet-api --bench load
bench-preconditions:
	cargo bench --locked --package precondition --bench evaluate --bench fuzz
bench-sentinel:
	cargo bench --locked --package sentinel --bench simulation
bench-nodes:
	cargo bench --locked --package global-pull-secret --bench nodes
bench-rotation: # CLUSTERS=100000 for that many
	cargo bench --locked --package credentials --bench rotation
bench-syncer:
	hack/measure-syncer.sh
bench-keyless:
	hack/measure-keyless.py

fuzz: export FUZZ_INPUTS ?= 1000000
fuzz: ## Damage a million documents, searches, bodies, events, results and preconditions
	cargo test --locked --release --workspace --lib -- fuzz
	cargo test --locked --release --package hyperfleet-api --test fuzz -- --nocapture
	cargo bench --locked --package precondition --bench fuzz

PREFIX ?= /usr/local
install: ## Build, and install the programs in PREFIX/bin
	@mkdir -p "$(DESTDIR)$(PREFIX)/bin" && test -w "$(DESTDIR)$(PREFIX)/bin" || \
	  { echo "Error: cannot write to $(DESTDIR)$(PREFIX)/bin; choose another folder: make install PREFIX=$$HOME/.local" >&2; exit 1; }
	@$(MAKE) --no-print-directory build
	install -D --target-directory=$(DESTDIR)$(PREFIX)/bin target/release/pull-secret target/release/global-pull-secret target/node/sync-global-pullsecret target/node/keyless-credential-provider

binary: ## Leave the release binary pull-secret in this folder
	$(of_build) cargo build --locked --release --package pull-secret $(of_stores)
	cp target/release/pull-secret pull-secret

IMAGES := pull-secret global-pull-secret sync-global-pullsecret keyless-credential-provider
image = $(IMAGE_REGISTRY)/$(IMAGE_NAME):$(IMAGE_TAG)

image: ## Build the container image IMAGE_NAME: pull-secret, global-pull-secret, sync-global-pullsecret or keyless-credential-provider
	@echo "Building $(IMAGE_KIND)image $(image)..."
	$(CONTAINER_TOOL) build --target $(IMAGE_NAME) --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) \
	  --build-arg BUILD_DATE=$(BUILD_DATE) --build-arg STORES="$(STORES)" -t $(image) -f Containerfile .

image-push: image ## Build and push the container image
	@echo "Pushing $(IMAGE_KIND)image $(image)..."
	$(CONTAINER_TOOL) push $(image)

image-dev: ## Build and push quay.io/QUAY_USER/IMAGE_NAME:dev-COMMIT
	@if [ -z "$(QUAY_USER)" ]; then echo "Error: QUAY_USER is not set" >&2; exit 1; fi
	@$(MAKE) --no-print-directory image-push IMAGE_KIND="dev " IMAGE_REGISTRY=quay.io/$(QUAY_USER) IMAGE_TAG=$(DEV_TAG)

images: $(addprefix image-of-,$(IMAGES)) ## Build all container images
images-push: $(addprefix image-push-of-,$(IMAGES)) ## Build and push all container images
.PHONY: $(addprefix image-of-,$(IMAGES)) $(addprefix image-push-of-,$(IMAGES))
$(addprefix image-of-,$(IMAGES)): image-of-%:
	@$(MAKE) --no-print-directory image IMAGE_NAME=$*
$(addprefix image-push-of-,$(IMAGES)): image-push-of-%:
	@$(MAKE) --no-print-directory image-push IMAGE_NAME=$*

image-archives: build ## Assemble the images without a container tool, from Debian's packages; leave them in target/images
	hack/image-archives.sh target/release target/images $(IMAGE_TAG) pull-secret global-pull-secret
	hack/image-archives.sh target/node target/images $(IMAGE_TAG) sync-global-pullsecret keyless-credential-provider

clean: ## Remove what was built
	cargo clean
