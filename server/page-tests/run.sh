#!/usr/bin/env bash
# Tests the page of `elias serve`: run.sh [BASE_URL]
# Without an address a mock server is started; with one, the live server there is tested.
# Needs Node.js 20 or newer, Python 3 and Chromium; CHROMIUM names another path than /usr/bin/chromium.
set -euo pipefail
cd "$(dirname "$0")"

chromium=${CHROMIUM:-/usr/bin/chromium}
if ! [ -x "$chromium" ]; then
    echo "run.sh: there is no $chromium; install it (Debian: apt-get install chromium) or set CHROMIUM" >&2
    exit 1
fi

# Packages go into a hidden folder, which the repository's own checks of documents pass over.
mkdir -p .deps
if ! cmp -s package-lock.json .deps/installed.json; then
    cp package.json package-lock.json .deps/
    (cd .deps && npm ci --silent --no-audit --no-fund --ignore-scripts)
    cp package-lock.json .deps/installed.json
fi
if grep -q '"resolved"' package-lock.json; then
    echo "run.sh: package-lock.json names the host of a registry; remove the lines \"resolved\"" >&2
    exit 1
fi

files=(unit.test.mjs views.test.mjs)
if [ $# -gt 0 ]; then
    export ELIAS_PAGE_URL="${1%/}/"
else
    files+=(faults.test.mjs)
fi
exec node --test --test-concurrency=1 --test-reporter=./reporter.mjs "${files[@]}"
