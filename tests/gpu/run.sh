#!/bin/sh
# On a machine with an NVIDIA GPU and PyTorch: are the bytes right, how fast is the upload, does it hide behind the work?
#
#   run.sh             uses build/gpu (made by prepare.sh, about 40 MiB), needs no registry; under five minutes
#   run.sh --stand-in  runs all of it against a stand-in for the CUDA runtime: no figure then means anything
#
# PYTHON names the interpreter. Ends with "N passed, N failed".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kit=${KIT:-$here/../../build/gpu}
python=${PYTHON:-python3}
set -- "$@"
ls "$kit"/shardpack-*.whl "$kit"/photos.shards/* >/dev/null || { echo "run.sh: $kit lacks the wheel or the dataset: prepare.sh makes it"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/shardpack-gpu-XXXXXX")
trap 'rm -rf "$work"' EXIT
"$python" -m zipfile -e "$kit"/shardpack-*.whl "$work/site"
chmod +x "$work"/site/shardpack/_bin/*
PYTHONPATH="$work/site" PYTHONDONTWRITEBYTECODE=1 "$python" "$here/check.py" --kit "$kit" --work "$work" "$@"
