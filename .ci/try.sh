#!/usr/bin/env bash
# Tries a binary and a wheel where nothing of the build is: the binary alone in an empty root with, at most, the C library
# (Linux; elsewhere in an empty folder and an empty environment), the wheel in a new virtual environment.
# Argument: the folder that `.ci/build.sh` wrote to. PYTHON names another interpreter.
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

binary=elias
[ ! -e elias.exe ] || binary=elias.exe
mkdir -p "$work/root/tmp"
cp "$binary" "$work/root/"
cat >"$work/root/data.jsonl" <<'DATA'
{"text": "ripe red apple", "labels": ["fruit", "red"]}
{"text": "fast red car", "labels": ["vehicle", "red"]}
{"text": "ripe green pear", "labels": ["fruit", "green"]}
{"text": "fast green bike", "labels": ["vehicle", "green"]}
DATA
echo '{"text": "a ripe plum"}' >"$work/root/question.jsonl"

if [ "$(uname)" = Linux ]; then
    # What `ldd` names; a static binary has nothing.
    { ldd "$binary" 2>/dev/null || true; } | grep -o '/[^ )]*' | while read -r library; do
        mkdir -p "$work/root$(dirname "$library")"
        cp -L "$library" "$work/root$library"
    done
    (cd "$work/root" && find . -type f | sort)
    alone() {
        if [ "$(id -u)" = 0 ]; then
            env -i /usr/sbin/chroot "$work/root" "$@"
        else
            env -i unshare --map-root-user chroot "$work/root" "$@"
        fi
    }
else
    alone() { (cd "$work/root" && env -i ${SYSTEMROOT:+SYSTEMROOT="$SYSTEMROOT"} ".$1" "${@:2}"); }
fi
alone "/$binary" --version
alone "/$binary" train data.jsonl --out model --set stage1.epochs=50 -q
alone "/$binary" predict model question.jsonl --top-k 1 | tee "$work/answer"
grep -q '"fruit"' "$work/answer"

for wheel in wheels/*.whl *.whl; do
    [ -e "$wheel" ] || continue
    "${PYTHON:-python3}" -m venv "$work/venv"
    python=$work/venv/bin/python
    [ -x "$python" ] || python=$work/venv/Scripts/python.exe
    "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$wheel"
    "$python" -I - "$work/from-python" <<'PYTHON'
import sys
import elias_xmc
texts = ["ripe red apple", "fast red car", "ripe green pear", "fast green bike"]
labels = [["fruit", "red"], ["vehicle", "red"], ["fruit", "green"], ["vehicle", "green"]]
elias_xmc.train(texts, labels, out=sys.argv[1], stage1_epochs=50)
answer = elias_xmc.load(sys.argv[1]).predict("a ripe plum", k=1)[0]
print(elias_xmc.__version__, answer)
assert answer.label == "fruit"
PYTHON
done
