# Two commands are all a newcomer needs: `make run` and `make test`. Each installs what is missing first.

export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: help run explorer install test quick prove fuzz soak bench book

help:
	@echo 'make run     compare eleven schemes on the embedded traces; table here, report in brakelight-report/'
	@echo 'make explorer  the simulator as a web page: build it, serve it on this machine, open it'
	@echo 'make install  the command `brakelight`, into ~/.cargo/bin, with its manual pages and completions'
	@echo 'make test    everything the gate checks: format, lints, docs, all tests'
	@echo 'make quick   format, lints and unit tests only'
	@echo 'make prove   long tests: 10 million inputs for each fuzzed parser'
	@echo 'make fuzz    a minute of coverage-guided fuzzing of every parser'
	@echo 'make soak    an hour of everything that lives long at once, watched; SECONDS=600 for ten minutes'
	@echo 'make bench   simulator speed and queue cost'
	@echo 'make book    the documentation as two books, in docs/book/'

# The gate runs the command of the tests, on one trace.
RUN := cargo run --release --locked --
COMPARE := --out brakelight-report

run:
	@scripts/setup run
	$(RUN) compare $(COMPARE)
	@echo
	@echo 'The report, with figures: open brakelight-report/report.html in a browser.'
	@echo 'The command is target/release/brakelight; `make install` puts it into ~/.cargo/bin. Next: docs/start.md'

explorer:
	@scripts/setup explorer
	scripts/explorer build
	cargo run --release --locked --features explorer -- explore --open

install:
	@scripts/setup run
	cargo install --locked --path crates/cli --features "$$(scripts/features)"
	scripts/install-extras "$${CARGO_INSTALL_ROOT:-$${CARGO_HOME:-$$HOME/.cargo}}/bin/brakelight"

test:
	@scripts/setup test
	@scripts/check

quick:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace --lib

prove:
	@scripts/setup test
	scripts/prove

fuzz:
	@scripts/setup test
	scripts/fuzz

soak:
	@scripts/setup test
	cargo build --release --locked --all-features
	scripts/soak $(SECONDS)

bench:
	@scripts/setup run
	cargo run --release --locked -- bench

book:
	command -v mdbook >/dev/null || cargo install --locked mdbook
	scripts/book
	if [ -d web/dist ]; then rm -rf docs/book/explorer && cp -r web/dist docs/book/explorer; fi
