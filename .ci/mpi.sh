#!/usr/bin/env bash
# Training over a real MPI: the bytes of one process on 1, 2 and 4 ranks, ranks that are killed, other numbers of ranks
# that resume. Arguments: the MPIs to test, openmpi and mpich by default. Run it from anywhere in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

flavours=("$@")
[ ${#flavours[@]} -gt 0 ] || flavours=(openmpi mpich)
declare -A packages=([openmpi]="openmpi-bin libopenmpi-dev" [mpich]="mpich libmpich-dev")
for flavour in "${flavours[@]}"; do
    if ! command -v "mpirun.$flavour" >/dev/null || ! command -v clang >/dev/null; then
        if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
            apt-get update -q
            # The crate reads mpi.h with libclang.
            # shellcheck disable=SC2086 # several packages
            apt-get install -y -q --no-install-recommends ${packages[$flavour]} clang libclang-dev
        else
            echo "mpirun.$flavour is not here: install ${packages[$flavour]} clang libclang-dev" >&2
            exit 1
        fi
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Two threads per rank, as many as ranks share here.
threads=(--threads 2)

# 900 texts of two or three of 120 words, with a label for each word.
python3 - "$work/train.jsonl" <<'PYTHON'
import json, sys
with open(sys.argv[1], "w") as out:
    for point in range(900):
        words = [point % 120, (point * 7 + point // 120) % 120, point * point % 120][: 2 + point % 2]
        record = {"text": " ".join(f"word{w}" for w in words), "labels": [f"l{w}" for w in words]}
        out.write(json.dumps(record) + "\n")
PYTHON
# 9,000 texts of two words, with a label for each.
python3 - "$work/many.jsonl" <<'PYTHON'
import json, sys
with open(sys.argv[1], "w") as out:
    for point in range(9000):
        words = [point, point * 31 % 9000]
        record = {"text": " ".join(f"word{w // 9} own{w}" for w in words), "labels": [f"l{w}" for w in words]}
        out.write(json.dumps(record) + "\n")
PYTHON
settings=()
for setting in encoder.dim=16 index.n_clusters=8 index.beam_size=3 index.shortlist_size=30 \
    train.batch_size=50 stage1.epochs=5 stage2.epochs=5 hold_out.min_points=20; do
    settings+=(--set "$setting")
done

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# That two models are the same, but for the times of their trainings.
same() {
    diff -r --exclude times.json "$work/alone" "$1" || fail "$1 is another model"
}

# The processes of a program, by its path.
processes() {
    pgrep -f "^$1 train" || true
}

test_flavour() {
    local flavour=$1 elias=$work/elias-$1 run
    echo "== $flavour: build"
    # The build script of mpi-sys does not notice that another MPI is asked for.
    cargo clean -q --release -p mpi-sys -p mpi
    MPICC=mpicc.$flavour cargo clippy -q --release -p elias-cli --features mpi -- -D warnings
    MPICC=mpicc.$flavour cargo build -q --release -p elias-cli --features mpi
    cp target/release/elias "$elias"
    run=("mpirun.$flavour")
    [ "$flavour" = mpich ] || run+=(--oversubscribe --bind-to none)
    local train=("$elias" train "$work/train.jsonl" "${settings[@]}" "${threads[@]}" -q)

    rm -rf "$work/alone"
    "${train[@]}" --out "$work/alone"
    for n in 1 2 4; do
        echo "== $flavour: $n ranks"
        "${run[@]}" -n $n "${train[@]}" --out "$work/$flavour-$n"
        same "$work/$flavour-$n"
    done

    echo "== $flavour: clusters that ranks share"
    # From 8,192 clusters on.
    local many=("$elias" train "$work/many.jsonl" "${threads[@]}" -q --calibration off --neighbours off
        --set encoder.dim=8 --set index.n_clusters=8192 --set stage1.epochs=1 --set stage2.epochs=1)
    "${many[@]}" --out "$work/many-alone" --overwrite
    "${run[@]}" -n 3 "${many[@]}" --out "$work/many-$flavour"
    diff -r --exclude times.json "$work/many-alone" "$work/many-$flavour" || fail "3 ranks trained another model"

    for killed in 0 2; do
        echo "== $flavour: rank $killed of 3 is killed, 2 ranks resume"
        local model=$work/$flavour-killed-$killed
        "${run[@]}" -n 3 "${train[@]}" --out "$model" --checkpoint-every 0 >"$work/killed.log" 2>&1 &
        local mpirun=$!
        until [ -e "$model/checkpoint/slot-1/manifest.json" ]; do
            kill -0 $mpirun 2>/dev/null || fail "it ended before it could be killed: $(cat "$work/killed.log")"
            sleep 0.05
        done
        local victim=""
        for process in $(processes "$elias"); do
            if tr '\0' '\n' <"/proc/$process/environ" |
                grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$killed$"; then
                victim=$process
            fi
        done
        [ -n "$victim" ] || fail "rank $killed is not there"
        kill -9 "$victim"
        local killed_at=$SECONDS
        if timeout 30 tail --pid=$mpirun -f /dev/null; then :; else fail "the other ranks hang"; fi
        if wait $mpirun; then fail "mpirun says that all went well"; fi
        echo "   ended after $((SECONDS - killed_at)) s"
        [ -s "$work/killed.log" ] || fail "nobody said why it ended"
        timeout 10 sh -c "while pgrep -f '^$elias train' >/dev/null; do sleep 0.1; done" ||
            fail "processes are left: $(processes "$elias")"
        [ ! -e "$model/manifest.json" ] || fail "the killed training is complete"
        "${run[@]}" -n 2 "${train[@]}" --out "$model" --resume
        same "$model"
    done

    echo "== $flavour: stopped by one process, resumed by three; stopped by those, resumed by one"
    local model=$work/$flavour-mixed
    for step in "" "${run[*]} -n 3"; do
        # shellcheck disable=SC2086 # words of a command
        $step "${train[@]}" --out "$model" --resume --checkpoint-every 0 2>/dev/null &
        local training=$!
        # A checkpoint that was not there before.
        until [ -n "$(find "$model/checkpoint" -name manifest.json -newer "$work/train.jsonl" 2>/dev/null)" ]; do
            kill -0 $training 2>/dev/null || fail "it ended before it could be killed"
            sleep 0.05
        done
        touch "$work/train.jsonl"
        kill -9 $training
        wait $training 2>/dev/null || true
        until [ -z "$(processes "$elias")" ]; do sleep 0.1; done
    done
    "${train[@]}" --out "$model" --resume
    same "$model"

    echo "== $flavour: an error is reported once"
    if "${run[@]}" -n 4 "$elias" train "$work/nothing.jsonl" --out "$work/none" 2>"$work/error.log"; then
        fail "data that is not there was trained on"
    fi
    [ "$(grep -c "nothing.jsonl" "$work/error.log")" = 1 ] || fail "$(cat "$work/error.log")"
    for other in openmpi mpich; do
        if [ "$other" != "$flavour" ] && command -v "mpirun.$other" >/dev/null; then
            echo "== $flavour: the mpirun of $other is refused"
            if "mpirun.$other" -n 2 "${train[@]}" --out "$work/none" 2>"$work/error.log"; then
                fail "two processes that do not see each other wrote one model"
            fi
            [ ! -e "$work/none/manifest.json" ] || fail "they wrote a model"
        fi
    done
    echo "== $flavour: all good"
}

for flavour in "${flavours[@]}"; do
    test_flavour "$flavour"
done
