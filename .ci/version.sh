#!/usr/bin/env bash
# Prints the version, which `[workspace.package]` in Cargo.toml has; with a tag (`v1.2.3`), fails unless everything is
# ready for a release under it. With `--notes`, prints what CHANGELOG.md says of the version.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)
fail() {
    echo "$*" >&2
    exit 1
}
case ${1:-} in
"") echo "$version" ;;
--notes) awk -v heading="## $version" '$0 == heading || index($0, heading " ") == 1 {on = 1; next} /^## / {on = 0} on' CHANGELOG.md ;;
*)
    [ "$1" = "v$version" ] || fail "the tag is $1, Cargo.toml has $version"
    [ "$(grep -c "version = \"=$version\"" Cargo.toml)" = 2 ] ||
        fail "Cargo.toml: elias and elias-server are not asked for as =$version"
    [ -n "$("$0" --notes)" ] || fail "CHANGELOG.md has no section \"## $version\""
    awk '/^## Unreleased/ {on = 1; next} /^## / {on = 0} on && /^- / {found = 1} END {exit found}' CHANGELOG.md ||
        fail "CHANGELOG.md: there are changes under \"Unreleased\""
    ;;
esac
