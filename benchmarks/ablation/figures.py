#!/usr/bin/env python3
"""Draws the recall inside the shortlist from the tables of docs/learned-index.md, so that both say the same.

    python3 benchmarks/ablation/figures.py

Every image of that page is drawn from the last table above it that starts with beam 20: a curve per row, its mean and,
as a band, its spread over seeds.
"""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from common import ROOT, enter_environment

PAGE = ROOT / "docs" / "learned-index.md"
STYLES = {"fixed": "C7:", "overlap": "C1-.", "random": "C2--", "once": "C4-", "counted": "C0--", "learned": "C3-"}
IMAGE = re.compile(r"!\[recall inside the shortlist, (.+)\]\((.+)\)")


def cells(line):
    return [cell.strip(" *") for cell in line.strip().strip("|").split("|")]


def figures(page):
    """Title, path, shortlist sizes and curves of each image."""
    header, rows = [], []
    for line in page.splitlines():
        if line.startswith("| index | beam 20: "):
            header, rows = cells(line.replace("beam 20: ", "")), []
        elif header and line.startswith("| "):
            rows.append(cells(line))
        elif image := IMAGE.fullmatch(line):
            n_sizes = next(at for at, cell in enumerate(header) if cell.startswith("beam 5")) - 1
            sizes = [int(cell.replace(",", "")) for cell in header[1 : 1 + n_sizes]]
            curves = {row[0]: [tuple(map(float, cell.split(" ± "))) for cell in row[1 : 1 + n_sizes]] for row in rows}
            yield image[1], PAGE.parent / image[2], sizes, curves


def draw(title, path, sizes, curves):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = title
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2))
    for kind, points in curves.items():
        means, spreads = zip(*points)
        (line,) = axes.plot(sizes, means, STYLES[kind], marker="o", markersize=3, label=kind)
        low, high = zip(*((mean - spread, mean + spread) for mean, spread in zip(means, spreads)))
        axes.fill_between(sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set(xscale="log", xlabel="labels in the shortlist, beam 20", ylabel="true labels among them, %", title=title)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    enter_environment("figures", ["matplotlib"])
    for figure in figures(PAGE.read_text(encoding="utf-8")):
        draw(*figure)
        print(figure[1].relative_to(ROOT))


if __name__ == "__main__":
    main()
