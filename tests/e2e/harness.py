"""What the end-to-end tests share: a case with its folder, running programs, and expectations."""
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import threading

LONG = os.environ.get("TEST_LONG") == "1"
REPO = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
PATIENCE = 100  # seconds, also on a busy machine: for what ends at once, or waits for a far deadline


class Failure(AssertionError):
    """An expectation was not met."""


class Skip(Exception):
    """The test cannot run here; the text says why."""


def long(function):
    """Marks a test that runs with TEST_LONG=1 only."""
    function.long = True
    return function


def require(condition, text, *values):
    if not condition:
        raise Failure(text % values if values else text)


def equal(have, want, what):
    require(have == want, "%s: have %.600r, want %.600r", what, have, want)


def remove(path):
    """Removes a tree, whatever its permissions."""
    os.chmod(path, 0o755)
    for folder, below, _ in os.walk(os.fsencode(path)):
        for name in below:
            full = os.path.join(folder, name)
            if not os.path.islink(full):
                os.chmod(full, 0o755)
    shutil.rmtree(os.fsencode(path), ignore_errors=True)


def tree(path):
    """{relative path: bytes} of every regular file below path; keys are bytes. Folders are not listed."""
    root, found = os.fsencode(path), {}
    for folder, _, names in os.walk(root):
        for name in names:
            full = os.path.join(folder, name)
            if not os.path.islink(full) and os.path.isfile(full):
                with open(full, "rb") as file:
                    found[os.path.relpath(full, root)] = file.read()
    return found


def same_trees(a, b, what="trees"):
    have, want = tree(a), tree(b)
    missing, extra = sorted(want.keys() - have.keys())[:5], sorted(have.keys() - want.keys())[:5]
    require(not missing and not extra, "%s: missing %r, too many %r", what, missing, extra)
    differ = [name for name in want if want[name] != have[name]][:5]
    require(not differ, "%s: these differ: %r", what, differ)


class Result:
    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    @property
    def text(self):
        return self.err.decode(errors="replace")

    def describe(self):
        return "%s: exit %d\n%s\n%s" % (" ".join(map(repr, self.command)), self.code, self.out[-2000:], self.text[-2000:])


class Case:
    """One test: a folder of its own, and the command under test."""

    _photos = threading.Lock()

    def __init__(self, folder, shared):
        self.dir, self.shared = folder, shared
        self.command = str(shared / "shardpack")

    def run(self, *arguments, check=False, user=None, env=None, **options):
        """Runs a program. check: it must succeed. user: as this uid, when we are root."""
        command = [os.fspath(a) if isinstance(a, os.PathLike) else a for a in arguments]
        if user is not None and os.geteuid() == 0:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] + command
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", 1200)
        done = subprocess.run(command, capture_output=True, env={**os.environ, **(env or {})}, **options)
        result = Result(command, done.returncode, done.stdout, done.stderr)
        require(not check or result.code == 0, "%s", result.describe())
        return result

    def spk(self, *arguments, **options):
        """Runs shardpack; it must succeed."""
        return self.run(self.command, *arguments, check=True, **options)

    def refused(self, glob, *arguments, code=1, **options):
        """Runs shardpack, which must exit with `code` and end by a line on stderr that matches the glob; for verify, any
        of the problems on stdout may match too."""
        result = self.run(self.command, *arguments, **options)
        lines = [line.removeprefix("shardpack: ") for line in result.text.splitlines()[-1:]]
        if arguments[0] == "verify":
            lines += result.out.decode().splitlines()
        require(result.code == code, "expected exit %d: %s", code, result.describe())
        require(any(fnmatch.fnmatchcase(line, glob) for line in lines), "expected %r: %s", glob, result.describe())
        return result

    def peak_memory(self, *arguments):
        """(exit status, largest resident size in bytes) of shardpack with these arguments."""
        # From a small process: a child's figure includes the size of the process that started it.
        measure = (
            "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], capture_output=True); "
            "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
        )
        done = self.run("/usr/bin/python3", "-c", measure, self.command, *arguments, check=True)
        code, memory = map(int, done.out.split())
        return code, memory

    def pack(self, source, target, *options, **more):
        return self.spk("pack", "--quiet", *options, source, target, **more)

    def keys(self, dataset):
        return self.spk("ls", dataset).out.decode().splitlines()

    def json(self, *arguments, **options):
        return json.loads(self.spk(*arguments, **options).out)

    def photos(self, per_class=25):
        """The shared folder of photographs: made once, never to be written to."""
        folder = self.shared / f"photos-{per_class}"
        with self._photos:
            if not folder.exists():
                self.run(os.environ["MAKE_PHOTOS"], folder, str(per_class), check=True)
        return folder

    def write(self, path, data=b"x"):
        """Writes a file below the case's folder, folders included; path may be bytes."""
        full = os.path.join(os.fsencode(self.dir), os.fsencode(path))
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(data)
        return pathlib.Path(os.fsdecode(full))


def shards(dataset):
    return sorted(pathlib.Path(dataset).glob("*.tar.zst"))


def work_files(dataset):
    """Everything in a folder but hidden entries: what a reader may see."""
    folder = pathlib.Path(dataset)
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")) if folder.exists() else []
