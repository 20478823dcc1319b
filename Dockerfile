# The command, built from this source:
#   docker build -t brakelight .
#   docker run --rm -v "$PWD:/data" brakelight compare --trace link.down --out report
# Simulations, traces, `perf` and `perf-server` (with -p 4433:4433/udp) run as they are. `emulate` needs user namespaces,
# which Docker's default seccomp profile forbids; `tcp` and `router` change a kernel and belong on the machine itself.
FROM rust:1-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# The repository belongs to another user here; Git reads it for the commit that `--version` shows.
RUN git config --global --add safe.directory /source \
    && cargo build --release --locked -p brakelight-cli --features parquet

FROM debian:bookworm-slim
COPY --from=build /source/target/release/brakelight /usr/local/bin/brakelight
COPY --from=build /source/LICENSE-APACHE /source/LICENSE-MIT /usr/share/doc/brakelight/
RUN useradd --uid 1000 --create-home brakelight \
    && mkdir /data \
    && chown brakelight:brakelight /data
USER brakelight
WORKDIR /data
ENTRYPOINT ["brakelight"]
CMD ["--help"]
