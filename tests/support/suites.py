#!/usr/bin/env python3
"""Runs test suites one after another and adds up what they report.

suites.py --build DIR [--replay DIR] [--sanitized DIR]... [--make MAKE] SUITE...

A suite is a list of programs. A program says how many of its checks passed and failed: by Check's summary lines, or by a
last line "N passed, N failed"; one that says neither counts as one check, by its exit status. One that says that all
passed but exits with a failure counts as a failure more. The last line sums everything up in the same form.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

PINNED = "test_load_pinned test_load_pinned_faults test_load_uploader".split()
LINT = "layers.py sizes.py format.sh cppcheck.sh self_test.py".split()
CHECK_LINE = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.M)
COUNT_LINE = re.compile(r"^(?:.*\W)?(\d+) passed, (\d+) failed", re.M)


def count(output, status):
    """(passed, failed) of a program that ended with that status."""
    check, plain = CHECK_LINE.findall(output), COUNT_LINE.findall(output)
    if check:
        failed = sum(int(failures) + int(errors) for _, failures, errors in check)
        passed = sum(int(checks) for checks, _, _ in check) - failed
    elif plain:
        passed, failed = map(int, plain[-1])
    else:
        passed, failed = int(status == 0), int(status != 0)
    if status != 0 and failed == 0:
        failed = 1
    return passed, failed


def unit(options):
    for source in sorted(pathlib.Path("tests/unit").glob("test_*.c")):
        yield [options.build / "tests/unit" / source.stem]


def valgrind(options):
    """The unit tests of the layers with the most pointer arithmetic. A test that leaks or errs exits with 9."""
    check = "valgrind -q --leak-check=full --show-leak-kinds=definite,indirect --error-exitcode=9".split()
    for source in sorted(pathlib.Path("tests/unit").glob("test_*.c")):
        brute = source.stem == "test_load_exact"  # for hours
        if source.stem.split("_")[1] in ("image", "load", "plan") and not brute:
            yield check + ["--errors-for-leak-kinds=definite,indirect", options.build / "tests/unit" / source.stem]


def replay(options):
    """Each fuzz target over its committed corpus."""
    for source in sorted(pathlib.Path("tests/fuzz").glob("fuzz_*.c")):
        corpus = pathlib.Path("tests/fuzz/corpus")
        name = source.stem if (corpus / source.stem).exists() else source.stem.removeprefix("fuzz_")
        yield [options.replay / "tests/fuzz" / source.stem, corpus / name]


def pinned(options):
    """Page-locked slots and copies to the stand-in for a GPU: threads and late writes, so under each sanitizer."""
    for build in options.sanitized:
        for name in PINNED:
            yield [build / "tests/unit" / name]


def first(*paths):
    """The first program that exists, as a suite: a tree without any has nothing to check there."""
    return [[path] for path in paths if os.path.exists(path)][:1]


def suites(options):
    library = next(iter(sorted(options.build.glob("*.so"))), "no shared library")
    return {
        "unit": unit,
        "valgrind": valgrind,
        "pinned": pinned,
        "format": lambda _: first("tests/format/run", "tests/format/run.py", "tests/format/run.sh"),
        "cli": lambda _: first("tests/cli/run"),
        "pixels": lambda _: [["/usr/bin/python3", "tests/pixels/compare.py"]],
        "jpeg": lambda _: [["tests/jpeg/run"]],
        "e2e": lambda _: first("tests/e2e/run"),
        "lint": lambda _: [[f"tests/lint/{name}"] for name in LINT],
        "headers": lambda _: [["tests/lint/headers.sh"]],
        "exports": lambda _: [["tests/lint/exports.py", library]],
        "install": lambda _: [["tests/support/check_install.sh", options.build, options.make]],
        "replay": replay,
        "python": lambda _: first("tests/python/run"),
    }


def run(command, environment):
    """Runs one program, showing its output as it comes; (passed, failed)."""
    start, lines = time.monotonic(), []
    try:
        child = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}")
        return 0, 1
    for line in child.stdout:
        lines.append(line)
        print("    " + line, end="", flush=True)
    status = child.wait()
    passed, failed = count("".join(lines), status)
    verdict = f"{passed} passed, {failed} failed" + (f", exit {status}" if status else "")
    print(f"  {command[0]}: {verdict} ({time.monotonic() - start:.1f} s)", flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description="Runs test suites and sums up.")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--replay", type=pathlib.Path, help="folder of the fuzz targets built for replay")
    parser.add_argument("--sanitized", type=pathlib.Path, action="append", default=[], help="build with a sanitizer")
    parser.add_argument("--make", default="make")
    parser.add_argument("suite", nargs="+")
    options = parser.parse_args()
    environment = dict(os.environ)
    environment.pop("MAKEFLAGS", None)
    environment.pop("MAKELEVEL", None)
    if "valgrind" in options.suite:
        environment["CK_TIMEOUT_MULTIPLIER"] = "30"
        environment["CHECK_VALGRIND"] = "1"  # for tests that valgrind's own needs would fail
        environment["JSIMD_FORCENONE"] = "1"  # libjpeg-turbo's kernels compute more pixels than they were given
    environment["BUILD_DIR"] = str(options.build.resolve())
    environment["SHARDPACK"] = str((options.build / "shardpack").resolve())
    environment["RENDER_ONE"] = str((options.build / "tests/pixels/render_one").resolve())
    environment["IDENTITY"] = str((options.build / "tests/jpeg/identity").resolve())
    environment["MAKE_PHOTOS"] = str((options.build / "examples/make_photos").resolve())
    environment.setdefault("PYTHON_TESTS", str((options.build / "python-venv/bin/python").absolute()))
    passed = failed = 0
    bad = []
    table = suites(options)
    for name in options.suite:
        print(f"{name}:", flush=True)
        for command in table[name](options):
            good, wrong = run([str(word) for word in command], environment)
            passed, failed = passed + good, failed + wrong
            if wrong:
                bad.append(f"{name}: {command[0]}")
    for line in bad:
        print(f"FAILED: {line}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
