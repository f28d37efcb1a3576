#!/usr/bin/env bash
# Builds the wheel into target/wheels, installs it into a virtual environment in target/python and runs the tests of the
# Python package. PYTHON names another interpreter, arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=target/python/venv
if [ ! -x "$environment/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$environment"
fi
python=$PWD/$environment/bin/python
"$python" -m pip install --quiet --disable-pip-version-check -r python/tests/requirements.txt
rm -f target/wheels/elias_xmc-*.whl
"$python" -m maturin build --release --quiet --manifest-path python/Cargo.toml --out target/wheels
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheels/elias_xmc-*.whl
ls -l target/wheels

# From outside of python/, so that the installed package is tested.
root=$PWD
cd target/python
"$python" -m pytest -q -p no:cacheprovider "$root/python/tests" "$@"
"$python" -m mypy --config-file "$root/python/pyproject.toml" -p elias_xmc
"$python" -m mypy.stubtest --concise elias_xmc._elias
"$python" -m pytest -q -p no:cacheprovider --doctest-modules --doctest-ignore-import-errors --pyargs elias_xmc
