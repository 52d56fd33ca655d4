"""Running commands and comparing them: one process at a time, contenders in turn, medians and paired ratios."""
import dataclasses
import json
import os
import signal
import statistics
import subprocess
import sys
from typing import Callable, List, Optional, Sequence

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Something is missing or failed; the text says what."""


@dataclasses.dataclass
class Run:
    wall: float      # seconds
    cpu: float       # seconds, user and system, of the command and its children
    max_rss: int     # bytes, of the largest process
    foreign: float   # cores that everything else on the machine used meanwhile
    output: str      # stdout

    def json(self):
        return json.loads(self.output)


@dataclasses.dataclass
class Contender:
    name: str
    command: Sequence[str]
    before: Optional[Callable[[], None]] = None    # untimed preparation of each run
    value: Callable[[Run], float] = lambda run: run.wall


@dataclasses.dataclass
class Figures:
    """What one contender reached in all rounds."""
    name: str
    values: List[float]
    runs: List[Run]

    @property
    def median(self):
        return statistics.median(self.values)

    def as_json(self):
        return {"name": self.name, "median": self.median, "values": self.values,
                "cpu_seconds": [run.cpu for run in self.runs], "max_rss": [run.max_rss for run in self.runs],
                "foreign_cores": [round(run.foreign, 3) for run in self.runs]}


def say(text):
    print(text, file=sys.stderr, flush=True)


def busy_seconds():
    """CPU seconds that the machine spent since it started, steal included."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / CLOCK_TICKS


class Machine:
    """Starts commands through the helper program timed_run."""

    def __init__(self, helpers, folder):
        self.timed_run = os.path.join(helpers, "timed_run")
        self.cost = os.path.join(folder, "cost.json")
        self.output = os.path.join(folder, "stdout")
        self.errors = os.path.join(folder, "stderr")

    def run(self, command):
        """Runs a command to its end; BenchError with the last line of its stderr if it fails."""
        busy = busy_seconds()
        with open(self.output, "wb") as out, open(self.errors, "wb") as err:
            process = subprocess.Popen([self.timed_run, self.cost, *command], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=err, env=dict(os.environ, LC_ALL="C"), start_new_session=True)
            try:
                status = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        busy = busy_seconds() - busy
        if status != 0:
            raise BenchError(f"{' '.join(command)}: {self.complaint(status)}")
        with open(self.cost, encoding="ascii") as file:
            cost = json.load(file)
        with open(self.output, encoding="utf-8", errors="replace") as file:
            output = file.read(1 << 20)
        foreign = max(0.0, busy - cost["cpu"]) / max(cost["wall"], 1e-3)
        return Run(cost["wall"], cost["cpu"], cost["max_rss"], foreign, output)

    def complaint(self, status):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            lines = [line for line in file.read(1 << 16).splitlines() if line.strip()]
        return f"exit status {status}: {lines[-1] if lines else 'no message'}"

    def interleave(self, contenders, rounds, unit):
        """Runs all contenders once per round, in the same order; returns their Figures in that order."""
        figures = [Figures(contender.name, [], []) for contender in contenders]
        for number in range(rounds):
            for contender, figure in zip(contenders, figures):
                if contender.before:
                    contender.before()
                os.sync()    # nobody writes back what the one before left
                run = self.run(contender.command)
                figure.runs.append(run)
                figure.values.append(contender.value(run))
            shown = ", ".join(f"{figure.name} {number_text(figure.values[-1])} {unit}" for figure in figures)
            say(f"  round {number + 1} of {rounds}: {shown}")
        return figures


def paired_ratio(ours, peer):
    """Median, smallest and largest of the ratios round by round: slow drift of the machine cancels out."""
    ratios = [a / b for a, b in zip(ours.values, peer.values)]
    return statistics.median(ratios), min(ratios), max(ratios)


def number_text(value):
    """About four significant digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{3 if value < 1 else 2 if value < 100 else 1}f}"
