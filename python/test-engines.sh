#!/usr/bin/env bash
# Tests scoring and training on real engines, Spark, Ray and Dask, in a virtual environment of their own.
#     python/test-engines.sh [WHEEL] [PYTEST ARGUMENT ...]
# WHEEL: a wheel of elias-xmc; without one, it is built from this directory. Spark needs Java 17 or newer.
# The environment is kept in target/engines, so that a second run installs elias-xmc only.
set -euo pipefail

package=
if [[ "${1:-}" == *.whl ]]; then
    package=$(realpath "$1")
    shift
fi
cd "$(dirname "$0")/.."
root=$PWD
tests=$root/python/tests_engines
environment=$root/target/engines
python=$environment/venv/bin/python

if ! cmp -s "$tests/requirements.txt" "$environment/installed"; then
    python3 -m venv --clear "$environment/venv"
    "$python" -m pip install --quiet --disable-pip-version-check -r "$tests/requirements.txt"
    cp "$tests/requirements.txt" "$environment/installed"
fi
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "${package:-$root/python}"
# The answers are compared with the command's.
cargo build --release --quiet --bin elias

# Nothing leaves this machine, and nothing is asked of it from outside.
export PYSPARK_PYTHON=$python SPARK_LOCAL_IP=127.0.0.1
export RAY_AUTH_MODE=disabled RAY_USAGE_STATS_ENABLED=0 RAY_DATA_DISABLE_PROGRESS_BARS=1
# Workers import what the tests sabotage them with.
export PYTHONPATH=$tests ELIAS=$root/target/release/elias
cd "$environment"
exec "$python" -m pytest --quiet -p no:cacheprovider "$tests" "$@"
