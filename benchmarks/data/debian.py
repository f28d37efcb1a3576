#!/usr/bin/env python3
"""Rebuilds the data sets debian-deps and debian-small from Debian's package indices.

    python3 benchmarks/data/debian.py --mirror https://deb.debian.org/debian --out DIR
    python3 benchmarks/data/debian.py --indices TREE --out DIR
    python3 benchmarks/data/debian.py --self-test

TREE is laid out like a mirror: dists/SUITE/COMPONENT/binary-amd64/Packages.xz, and beside it
i18n/Translation-en.xz (or .bz2, .gz), which has the long descriptions. With --mirror the same files are downloaded
into DIR/indices first; files that are there already are kept. Writes DIR/debian-deps and DIR/debian-small, each with
train.jsonl.gz and test.jsonl.gz. The same indices give the same bytes; indices change from day to day.

The recipe:

  - A package is taken from the first of sid, trixie, bookworm, bullseye that has it.
  - Text: short and long description, white space and list bullets removed, at most 2,000 characters.
  - Labels: names in Pre-Depends, Depends, Recommends, Suggests and Enhances. Alternatives are split, versions and
    architectures dropped, versioned virtual names folded: perlapi-5.42.2 is perlapi, librust-log-0.4+std-dev is
    librust-log-dev.
  - Packages with the same text become one point with the labels of all.
  - Labels on more than 5 % of the points are dropped (libc6 and the like).
  - The split is by source package, chosen by a hash of its name.
  - A label needs two training points; points left without a label are dropped.
  - debian-small is a fifth of the points of either part, chosen by a hash of the text, with its own label filter.
"""

import argparse
import bz2
import collections
import gzip
import hashlib
import io
import json
import lzma
import pathlib
import re
import shutil
import sys
import urllib.error
import urllib.request

SUITES = ["sid", "trixie", "bookworm", "bullseye"]
COMPONENTS = ["main", "contrib", "non-free"]
RELATIONS = ["Pre-Depends", "Depends", "Recommends", "Suggests", "Enhances"]
OPENERS = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}
MAX_CHARACTERS = 2000
MAX_LABEL_SHARE = 0.05
MIN_TRAINING_POINTS = 2
# Of source packages; they leave 22 to 23 % of the points.
TEST_SHARE = 0.245
# Of points, before the label filter; a fifth is left after it.
SMALL_SHARE = 0.225

# What a versioned virtual name is folded to, tried in this order; all that match are applied.
FOLDS = [
    (r"t64$", ""),
    (r"^ghc-doc$", "ghc"),
    (r"^(librust-.+?)(?:-\d[\w.~]*)?(?:\+[\w.]+)?-dev$", r"\1-dev"),
    (r"^(libghc-.+-(?:dev|prof))-[\d.]+-[0-9a-z]{5}$", r"\1"),
    (r"^(lib.+-ocaml(?:-dev)?)-[0-9a-z]{5}$", r"\1"),
    (r"^(ocaml(?:-base)?)(?:-nox)?-[\d.]+$", r"\1"),
    (r"^(perlapi|phpapi|r-api|r-api-bioc|r-graphics-engine|erlang-abi)-[\d.]+$", r"\1"),
    (r"^(qtbase-abi|qtdeclarative-abi|qt6-.+-abi)-[\d-]+$", r"\1"),
]
FOLDS = [(re.compile(pattern), replacement) for pattern, replacement in FOLDS]


def stanzas(lines):
    """The paragraphs of a control file as dictionaries; continuation lines keep their leading space."""
    fields, key = {}, None
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields, key = {}, None
        elif line[0] in " \t":
            fields[key] += "\n" + line
        else:
            key, _, value = line.partition(":")
            fields[key] = value.strip()
    if fields:
        yield fields


def fold(name):
    for pattern, replacement in FOLDS:
        name = pattern.sub(replacement, name)
    return name


def labels_of(package):
    names = set()
    for relation in RELATIONS:
        for alternative in re.split(r"[,|]", package.get(relation, "")):
            name = re.split(r"[\s(:\[<]", alternative.strip())[0]
            if name:
                names.add(fold(name))
    return names


def text_of(description):
    short, *long = description.split("\n")
    lines = [re.sub(r"^[*+-]\s+", "", line.strip()) for line in long if line.strip() != "."]
    return " ".join(f"{short}. {' '.join(lines)}".split())[:MAX_CHARACTERS].rstrip()


def source_of(package):
    return package.get("Source", package["Package"]).split(" ")[0]


def unit_interval(purpose, name):
    """A number from 0 to below 1 that depends on the name alone."""
    digest = hashlib.sha256(f"{purpose}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def choose_packages(suites):
    """From (packages, descriptions) of each suite, newest first: the points as text -> [source, labels]."""
    seen, points = set(), {}
    for packages, descriptions in suites:
        named = {package["Package"]: package for package in packages}
        for name in sorted(named):
            if name in seen:
                continue
            seen.add(name)
            package = named[name]
            key = name, package.get("Description-md5")
            text = text_of(descriptions.get(key, package.get("Description", "")))
            point = points.setdefault(text, [source_of(package), set()])
            point[1] |= labels_of(package)
    return points


def drop_frequent(points):
    counts = collections.Counter(label for _, labels in points.values() for label in labels)
    frequent = {label for label, n in counts.items() if n > MAX_LABEL_SHARE * len(points)}
    for point in points.values():
        point[1] -= frequent
    return frequent


def keep_learnable(parts):
    """Leaves labels with enough training points, and points that have a label."""
    counts = collections.Counter(label for _, labels in parts["train"] for label in labels)
    kept = {label for label, n in counts.items() if n >= MIN_TRAINING_POINTS}
    filtered = {part: [(text, labels & kept) for text, labels in rows] for part, rows in parts.items()}
    return {part: [(text, sorted(labels)) for text, labels in rows if labels] for part, rows in filtered.items()}


def build(suites):
    """Both data sets as {set: {part: [(text, labels), ...]}}, and the labels dropped as too frequent."""
    points = choose_packages(suites)
    frequent = drop_frequent(points)
    parts = {"train": [], "test": []}
    for text in sorted(points, key=lambda text: unit_interval("order", text)):
        source, labels = points[text]
        part = "test" if unit_interval("split", source) < TEST_SHARE else "train"
        parts[part].append((text, labels))
    is_small = lambda text: unit_interval("small", text) < SMALL_SHARE
    small = {part: [row for row in rows if is_small(row[0])] for part, rows in parts.items()}
    return {"debian-deps": keep_learnable(parts), "debian-small": keep_learnable(small)}, frequent


def read_stanzas(path):
    with OPENERS[path.suffix](path, "rt", encoding="utf-8") as lines:
        yield from stanzas(lines)


def read_suite(tree, suite):
    packages, descriptions = [], {}
    for component in COMPONENTS:
        folder = tree / "dists" / suite / component
        packages += read_stanzas(folder / "binary-amd64" / "Packages.xz")
        names = [folder / "i18n" / f"Translation-en{ending}" for ending in OPENERS]
        translations = [name for name in names if name.exists()]
        if not translations:
            sys.exit(f"{folder / 'i18n'}: no Translation-en.xz, .bz2 or .gz; the long descriptions are in it")
        for stanza in read_stanzas(translations[0]):
            descriptions[stanza["Package"], stanza["Description-md5"]] = stanza["Description-en"]
    return packages, descriptions


def fetch(mirror, path, target):
    """Downloads one file; False if the mirror does not have it."""
    if target.exists():
        return True
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    try:
        with urllib.request.urlopen(f"{mirror.rstrip('/')}/{path}") as response, open(partial, "wb") as file:
            shutil.copyfileobj(response, file)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
    partial.rename(target)
    print(path, file=sys.stderr)
    return True


def download(mirror, tree):
    for suite in SUITES:
        for component in COMPONENTS:
            folder = f"dists/{suite}/{component}"
            wanted = [f"{folder}/binary-amd64/Packages.xz"]
            if not fetch(mirror, wanted[0], tree / wanted[0]):
                sys.exit(f"{mirror} has no {wanted[0]}")
            names = [f"{folder}/i18n/Translation-en{ending}" for ending in OPENERS]
            if not any(fetch(mirror, name, tree / name) for name in names):
                sys.exit(f"{mirror} has none of {', '.join(names)}")


def write(folder, parts):
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in parts.items():
        # No time and no name in the header, so that the same points give the same bytes.
        with open(folder / f"{part}.jsonl.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as out:
                for text, labels in rows:
                    out.write(json.dumps({"text": text, "labels": labels}, ensure_ascii=False) + "\n")


def self_test():
    packages = """Package: gtkam
Source: gtkam (1.0-3)
Depends: libc6 (>= 2.4), libglib2.0-0t64 (>= 2.80), perlapi-5.42.2, gimp | gimp-gtk3 [amd64], python3:any
Recommends: librust-log-0.4+default-dev, librust-log-dev
Description: pictures from a camera
Description-md5: 1

Package: gtkam-doc
Source: gtkam
Suggests: libghc-base-dev-4.20.2.0-47ff0, ocaml-base-5.4.1, libfoo-ocaml-dev-ab1c2
Description: documentation only
"""
    translations = """Package: gtkam
Description-md5: 1
Description-en: pictures from a camera
 GTKam is  graphical.
 .
  * It opens pictures.
"""
    descriptions = {(s["Package"], s["Description-md5"]): s["Description-en"] for s in stanzas(translations.splitlines())}
    newest = list(stanzas(packages.splitlines())), descriptions
    older = [{"Package": "gtkam", "Depends": "old-name", "Description": "older text"}], {}
    points = choose_packages([newest, older])
    text = "pictures from a camera. GTKam is graphical. It opens pictures."
    assert points[text] == [
        "gtkam", {"libc6", "libglib2.0-0", "perlapi", "gimp", "gimp-gtk3", "python3", "librust-log-dev"}
    ], points
    assert points["documentation only."] == ["gtkam", {"libghc-base-dev", "ocaml-base", "libfoo-ocaml-dev"}], points
    assert len(points) == 2, "the older suite adds nothing where a newer one has the package"
    for name, folded in {
        "qtbase-abi-5-15-19": "qtbase-abi", "r-api-4.0": "r-api", "libsdl2-2.0-0": "libsdl2-2.0-0",
        "xorg-video-abi-25": "xorg-video-abi-25", "librust-sha2-dev": "librust-sha2-dev",
        "librust-md-5-0.10-dev": "librust-md-5-dev", "phpapi-20240924": "phpapi",
    }.items():
        assert fold(name) == folded, (name, fold(name))

    same = [{"Package": f"p{i}", "Depends": f"a{i}", "Description": "the same"} for i in range(2)]
    assert choose_packages([(same, {})]) == {"the same.": ["p0", {"a0", "a1"}]}

    many = [
        {"Package": f"p{i}", "Source": f"s{i // 2}", "Depends": f"libc6, x{i % 40}, rare{i}", "Description": f"text {i}"}
        for i in range(2000)
    ]
    sets, frequent = build([(many, {})])
    assert frequent == {"libc6"}, frequent
    assert sets == build([(list(reversed(many)), {})])[0], "the order of the indices must not matter"
    for parts in sets.values():
        sources = {part: {int(text.split()[1].rstrip(".")) // 2 for text, _ in rows} for part, rows in parts.items()}
        assert not sources["train"] & sources["test"], "a source package is on both sides"
        counts = collections.Counter(label for _, labels in parts["train"] for label in labels)
        assert min(counts.values()) >= MIN_TRAINING_POINTS
        assert {label for _, labels in parts["test"] for label in labels} <= set(counts)
    assert set(text for text, _ in sets["debian-small"]["test"]) <= set(text for text, _ in sets["debian-deps"]["test"])
    print("self-test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--mirror", metavar="URL", help="download the indices from this Debian mirror")
    source.add_argument("--indices", metavar="TREE", type=pathlib.Path, help="indices that are already downloaded")
    source.add_argument("--self-test", action="store_true", help="check the recipe on a few inline stanzas")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="where the data sets go")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.out is None:
        parser.error("--out DIR is needed")
    tree = options.indices
    if options.mirror:
        tree = options.out / "indices"
        download(options.mirror, tree)
    sets, frequent = build([read_suite(tree, suite) for suite in SUITES])
    print("dropped as too frequent:", ", ".join(sorted(frequent)))
    for name, parts in sets.items():
        write(options.out / name, parts)
        n_labels = len({label for _, labels in parts["train"] for label in labels})
        for part, rows in parts.items():
            mean = sum(len(labels) for _, labels in rows) / len(rows)
            print(f"{name} {part}: {len(rows)} points, {n_labels} labels, {mean:.2f} labels per point")


if __name__ == "__main__":
    main()
