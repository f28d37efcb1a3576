#!/usr/bin/env bash
# Builds what a release gives to others, the binary or the wheel, for a target of rustc:
#     .ci/build.sh binary x86_64-unknown-linux-gnu OUT
#     .ci/build.sh wheel x86_64-unknown-linux-gnu OUT
# For Linux, `cargo-zigbuild`, `maturin` and `ziglang` (all from PyPI) link against the glibc of 2014, so that the result
# runs on every distribution since. The bytes should depend on the commit alone, not on where and when they are built.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1 target=$2 out=$3
mkdir -p "$out"

: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="--remap-path-prefix=$PWD=/elias --remap-path-prefix=$cargo_home=/cargo"
case $target in
*-windows-*) RUSTFLAGS+=" -C link-arg=/Brepro" suffix=.exe ;;
*) export CFLAGS="-ffile-prefix-map=$PWD=/elias -ffile-prefix-map=$cargo_home=/cargo" suffix= ;;
esac

case $what-$target in
binary-*-linux-gnu)
    cargo zigbuild --locked --profile dist -p elias-cli --target "$target.2.17"
    ;;
binary-*-linux-musl)
    cargo zigbuild --locked --profile dist -p elias-cli --target "$target"
    ;;
binary-*)
    cargo build --locked --profile dist -p elias-cli --target "$target"
    ;;
wheel-*-linux-*)
    python3 -m maturin build --locked --profile dist --manifest-path python/Cargo.toml --target "$target" --out "$out" \
        --zig --compatibility manylinux2014
    ;;
wheel-*)
    python3 -m maturin build --locked --profile dist --manifest-path python/Cargo.toml --target "$target" --out "$out"
    ;;
*)
    echo "expected \"binary\" or \"wheel\", found \"$what\"" >&2
    exit 2
    ;;
esac
if [ "$what" = binary ]; then
    cp "${CARGO_TARGET_DIR:-target}/$target/dist/elias$suffix" "$out/elias$suffix"
fi
