#!/usr/bin/env bash
# Tests the backend `elias` inside a real Annif, in a virtual environment of its own.
#     python/test-annif.sh [WHEEL] [PYTEST ARGUMENT ...]
# WHEEL: a wheel of elias-xmc; without one, it is built from this directory.
# `elias serve` is that of ELIAS_BINARY, or target/release/elias, which is built if need be.
# The environment is kept in target/annif, so that a second run installs elias-xmc only.
set -euo pipefail

package=.
if [[ "${1:-}" == *.whl ]]; then
    package=$(realpath "$1")
    shift
fi
cd "$(dirname "$0")"
if [ -z "${ELIAS_BINARY:-}" ] && [ ! -x ../target/release/elias ]; then
    cargo build --release --manifest-path ../cli/Cargo.toml
fi

environment=../target/annif
if [ ! -e "$environment/ready" ]; then
    python3 -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet "annif==1.4.*" pytest
    touch "$environment/ready"
fi
"$environment/bin/pip" install --quiet --force-reinstall --no-deps "$package"
# From outside of python/, so that the installed package is tested.
tests=$PWD/tests_annif
cd "$environment"
bin/python -m pytest --quiet -p no:cacheprovider "$tests" "$@"
