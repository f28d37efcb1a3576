#!/usr/bin/env bash
# Tests the service against its own description: the description is valid, clients that are generated from it work, and
# schemathesis makes up requests, valid and not, and checks every answer.
#     server/test.sh [SCHEMATHESIS ARGUMENT ...]
# Needs target/release/elias; the environment and a small model are kept in target/schemathesis.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/schemathesis
packages=("schemathesis==4.*" "openapi-spec-validator==0.9.*" "openapi-python-client==0.29.*")
if [ "$(cat "$environment/packages" 2>/dev/null)" != "${packages[*]}" ]; then
    python3 -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
    echo "${packages[*]}" >"$environment/packages"
fi
elias=target/release/elias
[ -x "$elias" ] || cargo build --release -p elias-cli
if [ ! -e "$environment/model/manifest.json" ]; then
    for colour in red green blue; do
        for thing in apple pear plum car bike train; do
            for word in old new small large; do
                printf '{"text": "a %s %s %s", "labels": ["%s", "%s"]}\n' "$word" "$colour" "$thing" "$colour" "$thing"
            done
        done
    done >"$environment/train.jsonl"
    "$elias" --quiet train "$environment/train.jsonl" --out "$environment/model" --overwrite --set encoder.dim=16
fi

log=$environment/server.log
"$elias" serve "$environment/model" --bind 127.0.0.1:0 2>"$log" &
server=$!
trap 'kill "$server"; wait "$server"' EXIT
until grep -q '^listening on' "$log"; do
    kill -0 "$server" || { cat "$log" >&2; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$log")
server/client-tests/run.sh "$url" "$environment/bin/python"
cd "$environment"
bin/schemathesis run "$url/openapi.json" --max-examples 100 --seed 1 --generation-database none \
    --request-timeout 20 --no-color "$@"
