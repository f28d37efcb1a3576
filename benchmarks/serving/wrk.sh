#!/usr/bin/env bash
# Drives `elias serve` with wrk (Debian's package of that name) and shows rate, latencies and CPU per request.
#     benchmarks/serving/wrk.sh MODEL TEXTS.jsonl [SECONDS] [CONNECTIONS]
# TEXTS.jsonl has a "text" per line, which is sent as it is. ELIAS names another binary.
set -euo pipefail
model=$1 texts=$(realpath "$2") seconds=${3:-10} connections=${4:-16}
elias=${ELIAS:-target/release/elias}

log=$(mktemp)
"$elias" serve "$model" --bind 127.0.0.1:0 2>"$log" &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -f "$log"' EXIT
until grep -q '^listening on' "$log"; do
    kill -0 "$server" || { cat "$log" >&2; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$log")

ticks() { awk '{sub(/.*\) /, ""); print $12 + $13}' "/proc/$server/stat"; }
before=$(ticks)
TEXTS=$texts wrk --threads 1 --connections "$connections" --duration "$seconds" --latency \
    --script "$(dirname "$0")/predict.lua" "$url" | tee "$log.wrk"
after=$(ticks)
awk -v ticks=$((after - before)) '/requests in/ {printf "CPU per request: %.0f us\n", ticks * 10000 / $1}' "$log.wrk"
rm -f "$log.wrk"
