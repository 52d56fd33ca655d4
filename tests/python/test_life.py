"""A loader's life in a process: signals, threads, forks, and the end of the interpreter."""
import copy
import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from conftest import contents, loader, run_script, workers_of

import shardpack

HEAD = """
import os, signal, sys, threading, time
import shardpack
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
def make(workers=2, **options):
    return shardpack.Loader(sys.argv[1], **{"batch_size": 16, "num_workers": workers, "shuffle": True,
                            "output": "numpy", "image": shardpack.RandomResizedCrop(64), **options})
"""


def test_use_after_close(data):
    batches = loader(data)
    steps = iter(batches)
    next(steps)
    batches.close()
    batches.close()
    for use in (lambda: next(steps), lambda: iter(batches), batches.state_dict, batches.stats, lambda: batches.epoch,
                lambda: batches.set_epoch(1), lambda: batches.load_state_dict({}), batches.__enter__):
        with pytest.raises(RuntimeError, match="the Loader is closed"):
            use()
    assert len(batches) == 10 and "closed" in repr(batches)


def test_two_iterations_at_once(data):
    with loader(data) as batches:
        one = iter(batches)
        next(one)
        two = iter(batches)
        with pytest.raises(RuntimeError, match="to iterate twice at once, make two Loaders"):
            next(one)
        assert len(list(two)) == 10
        with pytest.raises(StopIteration):
            next(two)
        for _ in batches:
            with pytest.raises(RuntimeError, match="make two Loaders"):
                for _ in zip(batches, iter(batches)):
                    pass
            break


def test_pickling_and_copying(data):
    with loader(data) as batches:
        for use in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="a Loader cannot be pickled or copied.*ShardDataset"):
                use(batches)


def test_a_forked_child_cannot_use_it(data):
    with loader(data) as batches:
        want = contents(batches)
        batches.set_epoch(0)
        steps = iter(batches)
        have = contents([next(steps)])
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                next(steps)
            except RuntimeError as error:
                os.write(writer, str(error).encode())
            batches.close()
            del batches, steps
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert f"belongs to process {os.getpid()}" in os.read(reader, 1000).decode()
        assert have + contents(steps) == want  # the parent's workers are as they were


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal: a shell's background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_at_once(data, interruptible):
    """While it waits for workers that are stopped; afterwards it goes on without a loss."""
    with loader(data) as batches:
        want = contents(batches)
        batches.set_epoch(0)
        steps, have = iter(batches), []
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGSTOP)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            while True:
                have += contents([next(steps)])
        sent = time.monotonic()
        timer.join()
        assert time.monotonic() - sent < 5
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGCONT)
        assert have + contents(steps) == want


def test_the_gil_is_free_while_waiting(data):
    with loader(data) as batches:
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGSTOP)
        ran = []

        def count():
            for _ in range(50):
                ran.append(1)
                time.sleep(0.001)
            for worker in workers_of(os.getpid()):
                os.kill(worker, signal.SIGCONT)

        thread = threading.Thread(target=count)
        thread.start()
        assert len(list(batches)) == 10 and len(ran) == 50
        thread.join()


def test_another_thread(data):
    with loader(data) as batches:
        want = contents(batches)
        batches.set_epoch(0)
        have = []
        thread = threading.Thread(target=lambda: have.extend(contents(batches)))
        thread.start()
        thread.join()
        assert have == want
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGSTOP)
        stuck = threading.Thread(target=lambda: have.extend(contents(batches)))
        stuck.start()
        problems = []
        while not problems and stuck.is_alive():
            try:
                batches.stats()
            except RuntimeError as error:
                problems.append(str(error))
        with pytest.raises(RuntimeError, match="in use by another thread"):
            batches.close()
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGCONT)
        stuck.join()
        assert problems == ["the loader is in use by another thread"] and len(have) == 20


@pytest.mark.parametrize("end", [
    "", "sys.exit(0)", "del loader", "os._exit(0)", "keep = [b for b, _ in zip(loader, range(1))]",
    "threading.Thread(target=lambda: [None for _ in loader], daemon=True).start(); time.sleep(0.05)",
    "import gc; gc.disable(); a = [loader]; a.append(a); globals().clear()"])  # fmt: skip
def test_interpreter_exit_in_mid_epoch(data, end):
    """No hang, no message, nothing left."""
    text = HEAD + "loader = make()\nsteps = iter(loader)\nbatch = next(steps)\n"
    text += "print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True)\n" + end
    workers = [int(word) for word in run_script(text, data).split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 10
    while any(pathlib.Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline, "workers are left"
        time.sleep(0.01)


def test_an_exception_in_the_loop(data):
    said = run_script(HEAD + "for batch in make():\n    raise ZeroDivisionError('mine')", data, expect=1)
    assert said.splitlines()[-1] == "ZeroDivisionError: mine" and "shardpack" not in said.replace(data, "")


def test_ctrl_c_ends_a_program(data):
    text = HEAD + "loader = make()\nprint('ready', flush=True)\nwhile True:\n    for batch in loader: pass\n"
    program = subprocess.Popen([sys.executable, "-c", text, data], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    assert program.stdout.readline() == "ready\n"
    workers = workers_of(program.pid)
    program.send_signal(signal.SIGINT)
    try:
        _, said = program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == -signal.SIGINT and said.splitlines()[-1] == "KeyboardInterrupt"
    assert len(workers) == 2 and not any(pathlib.Path(f"/proc/{worker}").exists() for worker in workers)


def test_a_script_without_a_main_guard(data, tmp_path):
    """Under the spawn start method, too: workers never import the script."""
    script = tmp_path / "script.py"
    script.write_text("import multiprocessing\nmultiprocessing.set_start_method('spawn')\nprint('once')\n" + HEAD
                      + "print(sum(1 for _ in make()))\n")
    done = subprocess.run([sys.executable, str(script), data], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("once\n10\n", "")


def memory_kib():
    """Always the same under AddressSanitizer, which keeps what was freed."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return 0
    gc.collect()
    with open("/proc/self/smaps_rollup") as file:
        fields = dict(line.split(":") for line in file if line.count(":") == 1)
    return int(fields["Anonymous"].split()[0])


def test_a_thousand_broken_epochs(data):
    """Memory, descriptors and processes stay flat."""
    with loader(data, batch_size=4, num_workers=1, image=shardpack.RandomResizedCrop(16), prefetch=1) as batches:

        def break_off(times):
            for i in range(times):
                for j, _ in enumerate(batches):
                    if j == i % 2:
                        break

        break_off(200)
        before = memory_kib(), len(os.listdir("/proc/self/fd")), sorted(workers_of(os.getpid()))
        break_off(800)
        after = memory_kib(), len(os.listdir("/proc/self/fd")), sorted(workers_of(os.getpid()))
        assert after[1:] == before[1:]
        assert after[0] - before[0] < 2048, (before[0], after[0])
        assert batches.epoch >= 1000


def test_fifty_loaders(data):
    def make_and_drop(times):
        for i in range(times):
            with loader(data, num_workers=i % 2, image=shardpack.RandomResizedCrop(32)) as batches:
                next(iter(batches))

    make_and_drop(15)
    before = memory_kib(), len(os.listdir("/proc/self/fd"))
    make_and_drop(35)
    assert len(os.listdir("/proc/self/fd")) == before[1]
    assert memory_kib() - before[0] < 4096


def test_importing_does_not_import_torch():
    assert run_script("import sys, shardpack; print('torch' in sys.modules)") == "False\n"
    said = run_script("import shardpack; shardpack.nothing", expect=1)
    assert "has no attribute 'nothing'" in said


def test_help_is_worth_reading():
    text = " ".join(str(shardpack.Loader.__doc__).split())
    for word in ("batch_size:", "-100", "``valid``:", "Thread-safety", "tail:", "Raises", "[batch, 3, height"):
        assert word in text, word
    for name in shardpack.__all__:
        if name != "ShardDataset":
            assert getattr(shardpack, name).__doc__, name


def test_documented_arguments_are_those_that_there_are():
    import inspect

    text = textwrap.dedent(shardpack.Loader.__doc__)
    for name in inspect.signature(shardpack.Loader).parameters:
        assert name == "dataloader" or name in text.split("Args:")[1], name
