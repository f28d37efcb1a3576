"""Memory, messages and arithmetic per rank of a training over MPI, and what a model of its cost predicts.

    python3 benchmarks/mpi/measure.py ELIAS [--labels 300000] [--ranks 1 2 4] [--steps 40] [--set KEY=VALUE]

ELIAS is a program that was built with --features mpi. The data are synthetic: points of five labels in a row and one at
random, thirty words of a group of fifty labels. Both stages are trained for so many steps each; what comes before and
between them (reading, clustering, the edges of stage 2) is done in full. Ranks share the cores of this machine, so times
say little; bytes, calls and memory are counted and do not depend on that. Rows of the optimiser that no step has touched
take no memory yet: more steps show more of it. Prints tables for docs/many-machines.md.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile

GROUP, LABELS, WORDS, N_WORDS = 50, 5, 30, 50_000
RANGES, BEAM = 16, 20
# From so many clusters on, ranks share them.
MIN_SHARED_CLUSTERS = 8192


def write_data(path, n_labels, n_points):
    """A file in the format of the XC Repository: `POINTS FEATURES LABELS`, then `label,label word:value …`."""
    draw = random.Random(7)
    with open(path, "w") as out:
        out.write(f"{n_points} {N_WORDS} {n_labels}\n")
        for point in range(n_points):
            first = point * LABELS % n_labels
            labels = {(first + offset) % n_labels for offset in range(LABELS)} | {draw.randrange(n_labels)}
            words = random.Random(first // GROUP)
            columns = sorted({words.randrange(N_WORDS) for _ in range(WORDS)})
            out.write(",".join(map(str, sorted(labels))) + " " + " ".join(f"{c}:1" for c in columns) + "\n")


def measure(elias, data, n_ranks, steps, settings):
    """The figures of stage 2, one dictionary per rank."""
    command = ["mpirun", "-n", str(n_ranks), "--oversubscribe", "--bind-to", "none"] if n_ranks > 1 else []
    command += [elias, "bench", "train", data, "--steps", str(steps), "--json", "--threads", "2", "-q"]
    for setting in settings:
        command += ["--set", setting]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment, text=True).stdout
    return [figures for name, figures in json.loads(output).items() if name.startswith("stage2")]


def sent(n_ranks, plan, keys, touched):
    """Bytes that a rank sends in a step of stage 2.

    keys: of a point, those that all ranks send since they may be among the K best   touched: rows of A with a gradient
    """
    others, own = n_ranks - 1, max(RANGES, n_ranks) / n_ranks
    batch = plan["batch"]
    sketches = 72 * batch * others
    cut = 8 * batch * (keys / n_ranks + 1) * others / n_ranks + 8 * batch * others / n_ranks
    gradients = 4 * batch * (plan["dim"] + plan["slots"]) * (own + 1) * others / n_ranks
    edges = 4 * touched * (2 * own + 1) * others
    # For each range the highest logit and the sum of exponentials, for each rank the best clusters and its parents.
    parents = (plan["slots"] - BEAM) / n_ranks
    clusters = batch * (8 * own + 8 * BEAM + 4 * parents) * others if is_shared(plan) else 0
    return sketches + cut + gradients + edges + clusters


def is_shared(plan):
    """Whether ranks share the clusters."""
    return plan["clusters"] >= MIN_SHARED_CLUSTERS


def fit(rows, plan):
    """What the model cannot know, keys and touched, by least squares over the counts of bytes."""
    known = {n: sent(n, plan, 0, 0) for n in rows}
    a = [sent(n, plan, 1, 0) - known[n] for n in rows]
    b = [sent(n, plan, 0, 1) - known[n] for n in rows]
    y = [rows[n]["bytes_sent_per_step"] - known[n] for n in rows]
    product = lambda left, right: sum(l * r for l, r in zip(left, right))
    aa, ab, bb, ay, by = product(a, a), product(a, b), product(b, b), product(a, y), product(b, y)
    determinant = aa * bb - ab * ab
    return (ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant


def predict(plan, keys, touched, figures, memory):
    """Step times of machines with sixteen cores like these, by number and network."""
    rate = 8 * figures["gflops"] * 1e9
    shared = 6 * plan["batch"] * figures["labels_scored_per_point"] * plan["dim"] / rate
    of_clusters = 6 * plan["batch"] * plan["clusters"] * plan["dim"] / rate
    print("\n| machines | memory each, MiB | labels, ms | clusters, ms | sent, KiB | 10 Gbit/s, ms | 100 Gbit/s, ms |")
    print("|---|---|---|---|---|---|---|")
    for n in [1, 2, 4, 8, 16, 32, 128]:
        n_bytes = sent(n, plan, keys, touched)
        clusters = of_clusters / n if is_shared(plan) else of_clusters
        row = [n, memory[0] + memory[1] / n, 1e3 * shared / n, 1e3 * clusters, n_bytes / 2**10]
        # A call takes some 20 µs for each doubling of the ranks.
        latency = figures["calls"] * 20e-6 * (n - 1).bit_length()
        row += [1e3 * (shared / n + clusters + n_bytes / bandwidth + latency) for bandwidth in (1.25e9, 1.25e10)]
        print("| " + " | ".join(f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("elias")
    parser.add_argument("--labels", type=int, default=300_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    batch = 256
    n_points = max(arguments.labels // LABELS, batch * arguments.steps)
    settings = ["final_score.kind=product", "ranker.enabled=false", "stage1.epochs=1", "stage2.epochs=1"]
    settings += [f"train.batch_size={batch}", f"encoder.dim={arguments.dim}"] + arguments.settings
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "train.txt")
        write_data(data, arguments.labels, n_points)
        print(f"{arguments.labels} labels, {n_points} points, settings {' '.join(settings)}\n")
        print("| ranks | rank | peak memory, MiB | calls per step | KiB sent per step | labels scored per point | ms per step |")
        print("|---|---|---|---|---|---|---|")
        rows, memory = {}, []
        for n_ranks in arguments.ranks:
            all_figures = measure(arguments.elias, data, n_ranks, arguments.steps, settings)
            for rank, figures in enumerate(all_figures):
                row = [n_ranks, rank, figures["peak_rss_bytes"] / 2**20, figures["calls_per_step"] or 0]
                row += [(figures["bytes_sent_per_step"] or 0) / 2**10, figures["labels_scored_per_point"]]
                row += [figures["ms_per_step"]]
                print("| " + " | ".join(f"{value:.0f}" for value in row) + " |", flush=True)
            memory.append((1 / n_ranks, max(figures["peak_rss_bytes"] for figures in all_figures) / 2**20))
            rows[n_ranks] = all_figures[0]
    if 1 in rows and len(rows) > 2:
        clusters = 1 << max(0, (arguments.labels + 99) // 100 - 1).bit_length()
        plan = {"batch": batch, "dim": arguments.dim, "slots": BEAM + LABELS + 1, "clusters": clusters}
        plan["clusters"] = next((int(s.split("=")[1]) for s in settings if s.startswith("index.n_clusters")), clusters)
        several = {n: figures for n, figures in rows.items() if n > 1}
        keys, touched = fit(several, plan)
        print(f"\nfitted: {keys:.0f} keys per point, {touched:.0f} touched rows of A")
        for n, figures in several.items():
            counted = figures["bytes_sent_per_step"]
            print(f"{n} ranks: {counted / 2**10:.0f} KiB counted, {sent(n, plan, keys, touched) / 2**10:.0f} by the model")
        slope, constant = statistics.linear_regression(*zip(*memory))
        first = dict(rows[1], calls=max(figures["calls_per_step"] for figures in several.values()))
        predict(plan, keys, touched, first, (constant, slope))


if __name__ == "__main__":
    main()
