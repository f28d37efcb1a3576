#!/usr/bin/env bash
# Validates the description of a running service, generates clients from it and lets them talk to it: run.sh URL PYTHON
# PYTHON is an interpreter with openapi-spec-validator and openapi-python-client; Node.js 20 or newer is needed, too.
set -euo pipefail
url=$1 python=$(realpath -s "$2")
cd "$(dirname "$0")"

# Packages and clients go into a hidden folder, which the repository's own checks of documents pass over.
mkdir -p .deps
if ! cmp -s package-lock.json .deps/installed.json; then
    cp package.json package-lock.json .deps/
    (cd .deps && npm ci --silent --no-audit --no-fund --ignore-scripts)
    cp package-lock.json .deps/installed.json
fi
cp smoke.py smoke.ts .deps/
cd .deps
curl -sS --fail "$url/openapi.json" -o openapi.json
"$python" -m openapi_spec_validator openapi.json

rm -rf elias_client
"$python" -m openapi_python_client generate --path openapi.json --meta none --output-path elias_client >generate.log 2>&1 ||
    { cat generate.log >&2; exit 1; }
"$python" smoke.py "$url"

npx openapi-typescript openapi.json --output elias.ts >generate.log 2>&1 || { cat generate.log >&2; exit 1; }
npx tsc --strict --target es2022 --module nodenext --types node --skipLibCheck smoke.ts
node smoke.js "$url"
