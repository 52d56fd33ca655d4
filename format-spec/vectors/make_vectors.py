#!/usr/bin/env python3
"""Makes the test vectors from scratch: make_vectors.py FOLDER. Same bytes with any version of Python or zstd."""

import sys

import datasets
import orders
import shards
from pieces import EXPECTED, write


def main(out):
    shards.good_shards(out)
    shards.encodings(out)
    shards.bad_cuts(out)
    shards.bad_seek_tables(out)
    shards.bad_index(out)
    shards.bad_list(out)
    shards.bad_frames(out)
    shards.bad_tars(out)
    datasets.good_datasets(out)
    datasets.encodings(out)
    datasets.bad_manifests(out)
    datasets.bad_tables(out)
    datasets.bad_shards(out)
    orders.orders(out)
    orders.crops(out)
    lines = "".join("\t".join(row) + "\n" for row in EXPECTED)
    write(out, "expected.tsv", ("#file\texpected\twhat\n" + lines).encode())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main(sys.argv[1])
