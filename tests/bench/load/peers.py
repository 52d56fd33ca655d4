#!/usr/bin/python3
"""Runs one other loader over the corpus, as its documentation says, and prints what it reached as JSON.

    peers.py prepare PEER SOURCE STORE          its own storage, made once from a folder of class folders
    peers.py run PEER SOURCE STORE --workers W --batch B --output uint8|float32|raw

Decoded: RandomResizedCrop(224) and a flip of half the images, for float32 also the usual normalisation, shuffling on;
batches as the loader makes them (NCHW, or NHWC where that is its own form). raw: the bytes of the files. One whole
epoch, then the first batch of a second one. The consumer does nothing with a batch. Started by the Python of the
virtual environment that environment.py makes.
"""
import argparse
import json
import os
import signal
import sys
import time
import warnings

sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")
START = time.monotonic()

import peers_native    # noqa: E402
import peers_torch    # noqa: E402

if "litdata" in sys.argv[1:3]:
    peers_torch.import_litdata()    # also in the processes that it starts, which import this file first
PEERS = {**peers_torch.PEERS, **peers_native.PEERS}
TICKS = os.sysconf("SC_CLK_TCK")


def stat_of(pid):
    """Fields of /proc/PID/stat from the state on; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def processes():
    return {int(pid): fields for pid, fields in ((pid, stat_of(pid)) for pid in os.listdir("/proc") if pid.isdigit())
            if fields}


def session_cpu():
    """CPU seconds of this session's processes so far: the loader's workers are among them."""
    session = str(os.getsid(0))
    return sum(int(fields[11]) + int(fields[12]) for fields in processes().values() if fields[3] == session) / TICKS


def end_workers():
    """Workers still busy with the second epoch would disturb whoever is measured next. What tidies up shared memory
    after us may stay."""
    every = processes()
    mine = {os.getpid()}
    for _ in range(4):
        mine |= {pid for pid, fields in every.items() if int(fields[1]) in mine}
    for pid in mine - {os.getpid()}:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"resource_tracker" not in file.read():
                    os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def measure(epoch):
    """epoch(number) yields the rows of each batch."""
    images = first_images = batches = 0
    begin = time.monotonic()
    first = cpu_first = None
    for rows in epoch(0):
        last = time.monotonic()
        images += rows
        batches += 1
        if first is None:
            first, first_images, cpu_first = last, rows, session_cpu()
    cpu = session_cpu() - cpu_first
    for _ in epoch(1):
        gap = time.monotonic() - last
        break
    took = max(last - first, 1e-9)
    return {"images": images, "batches": batches, "rate": (images - first_images) / took, "epoch": last - begin,
            "first_batch": first - begin, "start_to_first": first - START, "batch": took / max(batches - 1, 1),
            "gap": gap, "cpu": cpu}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["prepare", "run"])
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("source")
    parser.add_argument("store")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--url", help="where the store is served: it is read from there (webdataset)")
    parser.add_argument("--output", choices=["uint8", "float32", "raw"], default="uint8")
    args = parser.parse_args()
    peer = PEERS[args.peer]
    if args.action == "prepare":
        peer["prepare"](args.source, args.store)
        return
    result = measure(peer["open"](args))
    print(json.dumps({"peer": args.peer, "version": peer["version"](), **result}), flush=True)
    end_workers()
    os._exit(0)    # some hang in their own clean-up


if __name__ == "__main__":
    main()
