#!/usr/bin/python3
"""The virtual environment of the other loaders: made once, in build/bench/venv, from PyPI and the distribution.

    environment.py [FOLDER]     makes it, or says what is in it

PyTorch and torchvision are the distribution's (python3-torch), because those of PyPI bring about 3 GB of libraries for
graphics cards that nothing here uses. TORCH=pip takes those of PyPI nonetheless, in a folder of its own. What cannot be
installed is left out, with the reason in peers.json of the environment; removing the folder starts anew.
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
MINUTES = 10    # for one package

# name: (what pip installs, arguments; the module to try)
RECIPES = {
    "torchvision": ([["pillow"]], "torchvision"),
    "webdataset": ([["webdataset"]], "webdataset"),
    "mosaicml": ([["mosaicml-streaming"]], "streaming"),
    "litdata": ([["--no-deps", "litdata"],
                 ["obstore", "tifffile", "lightning-utilities", "boto3", "requests", "filelock"]], "litdata"),
    "spdl": ([["spdl"]], "spdl.io"),
    "mlx-data": ([["mlx-data"]], "mlx.data"),
    "ffcv": ([["wheel", "setuptools", "numba", "opencv-python-headless", "terminaltables", "assertpy", "tqdm",
               "pytorch-pfn-extras", "fastargs", "scikit-learn", "psutil"],
              ["--no-deps", "--no-build-isolation", "ffcv"]], "ffcv"),
    "dali": ([["nvidia-dali-cuda120"]], "nvidia.dali"),
    "datago": ([["datago"]], "datago"),
    "webshart": ([["webshart"]], "webshart"),
}
SHIM = "import sys; sys.path.insert(0, sys.argv[1]); import peers_torch; peers_torch.import_litdata()"


def from_pip():
    return os.environ.get("TORCH") == "pip"


def default_folder():
    return os.path.join(ROOT, "build/bench/venv-pip" if from_pip() else "build/bench/venv")


def run(command, log, minutes=MINUTES):
    """Returns None, or the last line of what a failing command said."""
    print("+", *command, file=log, flush=True)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=60 * minutes, text=True, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    print(done.stdout, file=log, flush=True)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return None if done.returncode == 0 else (lines or [f"exit status {done.returncode}"])[-1]


def install(python, name, constraints, log):
    """Returns None if the peer can be imported, else why not."""
    parts, module = RECIPES[name]
    for part in parts:
        problem = run([python, "-m", "pip", "install", "-q", "-c", constraints, *part], log)
        if problem:
            return problem
    code = SHIM if name == "litdata" else f"import {module}"
    return run([python, "-c", code, HERE], log)


def make(folder):
    """Makes the environment; returns what peers.json holds."""
    os.makedirs(folder, exist_ok=True)
    python = os.path.join(folder, "bin/python")
    constraints = os.path.join(folder, "constraints.txt")
    with open(os.path.join(folder, "install.log"), "w", encoding="utf-8") as log:
        system = run([os.path.join(ROOT, "tests/setup.sh"), "peers"], log, 30)
        problem = run(["/usr/bin/python3", "-m", "venv", *([] if from_pip() else ["--system-site-packages"]), folder],
                      log)
        if problem:
            raise OSError(f"python3 -m venv {folder}: {problem}")
        with open(constraints, "w", encoding="ascii") as file:
            file.write("" if from_pip() else "numpy<2\n")    # what the distribution's PyTorch was built for
        peers = {}
        if from_pip():
            system = run([python, "-m", "pip", "install", "-q", "torch", "torchvision"], log, 30) or system
        for name in RECIPES:
            print(f"  {name}", file=sys.stderr, flush=True)
            peers[name] = install(python, name, constraints, log)
    result = {"python": python, "packages": system, "peers": peers}
    with open(os.path.join(folder, "peers.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
    return result


def get(folder=None):
    """{"python": interpreter, "packages": why distribution packages are missing or None,
    "peers": {name: why it is missing or None}}"""
    folder = os.path.abspath(folder or default_folder())
    try:
        with open(os.path.join(folder, "peers.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        print(f"making {folder} (once; 2 GB, some minutes; log: install.log there)", file=sys.stderr, flush=True)
        return make(folder)


if __name__ == "__main__":
    print(json.dumps(get(*sys.argv[1:2]), indent=2))
