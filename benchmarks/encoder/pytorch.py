"""The same transformer steps by PyTorch: AdamW on every tensor, random weights, texts of one length.

    python benchmarks/encoder/pytorch.py [--threads 2] [--steps 5] [--dropout 0.1] [--shapes minilm-l6,bert-base]
                                         [--elias target/release/elias [--rounds 2]]

Prints JSON with the names of `elias bench encoder --json`. Needs torch alone: the model is BERT as PyTorch users write
it, over nn.Linear, scaled_dot_product_attention, nn.LayerNorm and nn.GELU. With --elias both are run, taking turns, and
a table of their times is printed.
"""

import argparse
import json
import statistics
import subprocess
import time

import torch
from torch import nn
from torch.nn import functional

SHAPES = {"minilm-l6": (384, 6), "bert-base": (768, 12)}
BATCHES = [(32, 32), (16, 128), (1, 32)]
N_WORDS, N_POSITIONS, N_HEADS = 30522, 512, 12


class Layer(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.inner = nn.Linear(hidden, 4 * hidden)
        self.outer = nn.Linear(4 * hidden, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = dropout

    def drop(self, x):
        return functional.dropout(x, self.dropout, self.training)

    def forward(self, x):
        batch, length, hidden = x.shape
        qkv = self.qkv(x).view(batch, length, 3, N_HEADS, hidden // N_HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        share = self.dropout if self.training else 0.0
        context = functional.scaled_dot_product_attention(q, k, v, dropout_p=share)
        context = context.transpose(1, 2).reshape(batch, length, hidden)
        x = self.attention_norm(x + self.drop(self.attention(context)))
        return self.output_norm(x + self.drop(self.outer(functional.gelu(self.inner(x)))))


class Bert(nn.Module):
    def __init__(self, hidden, n_layers, dropout):
        super().__init__()
        self.words = nn.Embedding(N_WORDS, hidden)
        self.positions = nn.Embedding(N_POSITIONS, hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(Layer(hidden, dropout) for _ in range(n_layers))
        self.dropout = dropout

    def forward(self, ids):
        positions = torch.arange(ids.shape[1])
        x = self.words(ids) + self.positions(positions) + self.types(torch.zeros_like(positions))
        x = functional.dropout(self.norm(x), self.dropout, self.training)
        for layer in self.layers:
            x = layer(x)
        return x.mean(dim=1)


def forward_flops(hidden, n_layers, n_texts, length):
    return n_texts * n_layers * (24.0 * length * hidden * hidden + 4.0 * length * length * hidden)


def sgemm(a, b):
    started = time.perf_counter()
    torch.mm(a, b)
    return 2.0 * len(a) ** 3 / (time.perf_counter() - started) / 1e9


def measure(model, optimiser, flops, n_texts, length, n_steps):
    ids = torch.randint(0, N_WORDS, (n_texts, length))
    upstream = torch.randn(n_texts, model.norm.normalized_shape[0]) * 1e-3
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    rates, steps, inferences = [], [], []
    for turn in range(n_steps + 1):
        rate = statistics.median(sgemm(a, b) for _ in range(3))
        model.train()
        started = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        (model(ids) * upstream).sum().backward()
        optimiser.step()
        step = time.perf_counter() - started
        model.eval()
        with torch.inference_mode():
            started = time.perf_counter()
            model(ids)
            inference = time.perf_counter() - started
        if turn:
            rates.append(rate), steps.append(step), inferences.append(inference)
    rate, step, inference = (statistics.median(values) for values in (rates, steps, inferences))
    n_tokens = n_texts * length
    training, inferring = 3 * flops / step / 1e9, flops / inference / 1e9
    return {
        "training_tokens_per_s": n_tokens / step,
        "training_step_ms": 1e3 * step,
        "training_gflops": training,
        "training_fraction_of_sgemm": training / rate,
        "inference_tokens_per_s": n_tokens / inference,
        "inference_ms": 1e3 * inference,
        "inference_gflops": inferring,
        "inference_fraction_of_sgemm": inferring / rate,
        "sgemm_gflops": rate,
    }


def pytorch(arguments):
    torch.manual_seed(1)
    figures = {}
    for name in arguments.shapes.split(","):
        hidden, n_layers = SHAPES[name]
        model = Bert(hidden, n_layers, arguments.dropout)
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
        for n_texts, length in BATCHES:
            flops = forward_flops(hidden, n_layers, n_texts, length)
            figures[f"{name} {n_texts}x{length}"] = measure(model, optimiser, flops, n_texts, length, arguments.steps)
    return figures


def elias(arguments):
    command = [arguments.elias, "--quiet", "bench", "encoder", "--json", "--shapes", arguments.shapes]
    for name in ("threads", "steps", "dropout"):
        command += [f"--{name}", str(getattr(arguments, name))]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def compare(arguments):
    """Both sides by turns; a table of every round's times and of the median ratio."""
    rounds = [(elias(arguments), pytorch(arguments)) for _ in range(arguments.rounds)]
    print("| | elias ms | PyTorch ms | PyTorch / elias | elias of sgemm |\n|---|---|---|---|---|")
    for batch in rounds[0][0]:
        for kind, time_key in (("training", "training_step_ms"), ("inference", "inference_ms")):
            ours, theirs = ([side[batch][time_key] for side in sides] for sides in zip(*rounds))
            shares = [sides[0][batch][f"{kind}_fraction_of_sgemm"] for sides in rounds]
            ratio = statistics.median(their / our for our, their in zip(ours, theirs))
            listed = lambda values, digits: ", ".join(f"{value:.{digits}f}" for value in values)
            print(f"| {batch}, {kind} | {listed(ours, 1)} | {listed(theirs, 1)} | {ratio:.2f} | {listed(shares, 2)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--elias", help="the program, to be measured beside PyTorch")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.elias:
        compare(arguments)
    else:
        print(json.dumps(pytorch(arguments), indent=2))


if __name__ == "__main__":
    main()
