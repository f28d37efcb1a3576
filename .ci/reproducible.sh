#!/usr/bin/env bash
# Builds binary and wheel of a commit twice, in folders of different names, and compares the bytes.
# Arguments: the commit (HEAD), the target (of this machine), a folder that gets the files. Takes two full builds.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=${1:-HEAD}
target=${2:-$(rustc -vV | sed -n 's/^host: //p')}
out=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH
unset CARGO_TARGET_DIR

for folder in first another/second; do
    mkdir -p "$work/$folder"
    git archive "$commit" | tar -x -m -C "$work/$folder"
    for what in binary wheel; do
        "$work/$folder/.ci/build.sh" "$what" "$target" "$work/$folder/out"
    done
done
for file in "$work"/first/out/*; do
    cmp "$file" "$work/another/second/out/$(basename "$file")"
done
(cd "$work/first/out" && sha256sum ./*)
if [ -n "$out" ]; then
    mkdir -p "$out"
    cp "$work"/first/out/* "$out"
fi
