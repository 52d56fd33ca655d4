"""The lines of the result: a table for people, JSON for programs."""
import dataclasses
import json
import os
import platform
import subprocess
from typing import List, Optional

from measure import Figures, number_text, paired_ratio

NOISY = 0.10    # cores used by others, from which on a figure is marked


@dataclasses.dataclass
class Line:
    section: str
    what: str
    figure: float         # what is held against the target
    unit: str             # of figure: "x" for ratios
    at_most: bool         # else: at least
    target: float
    detail: str           # the figures behind it
    foreign: float = 0.0  # cores used by others meanwhile, median
    data: Optional[dict] = None

    @property
    def met(self):
        return self.figure <= self.target if self.at_most else self.figure >= self.target

    def target_text(self):
        return f"{'<=' if self.at_most else '>='} {number_text(self.target)} {self.unit}"

    def as_json(self):
        return {"section": self.section, "what": self.what, "figure": self.figure, "unit": self.unit,
                "target": {"op": "<=" if self.at_most else ">=", "value": self.target}, "met": self.met,
                "detail": self.detail, "foreign_cores": round(self.foreign, 3), **(self.data or {})}


def ratio_line(section, what, ours: Figures, peer: Figures, unit, *, at_most=None, at_least=None):
    """A line that compares two contenders of one interleave()."""
    ratio, low, high = paired_ratio(ours, peer)
    detail = (f"{number_text(ours.median)} against {number_text(peer.median)} {unit}; "
              f"ratios {number_text(low)} to {number_text(high)}")
    data = {"ratio": {"median": ratio, "min": low, "max": high}, "ours": ours.as_json(), "peer": peer.as_json(),
            "values_unit": unit}
    return Line(section, what, ratio, "x", at_most is not None, at_least if at_most is None else at_most, detail,
                foreign_cores(ours, peer), data)


def foreign_cores(*figures: Figures):
    values = sorted(run.foreign for figure in figures for run in figure.runs)
    return values[len(values) // 2]


def print_table(lines: List[Line], quick):
    rows = [("section", "measured", "target", "figure", "", "behind it")]
    for line in lines:
        verdict = "met" if line.met else "MISSED"
        noise = f"  [others used {line.foreign:.1f} cores]" if line.foreign >= NOISY else ""
        rows.append((line.section, line.what, line.target_text(), f"{number_text(line.figure)} {line.unit}", verdict,
                     line.detail + noise))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    print()
    for number, row in enumerate(rows):
        print("  ".join([row[i].ljust(widths[i]) for i in range(5)] + [row[5]]).rstrip())
        if number == 0:
            print("-" * (sum(widths) + 10 + len("behind it")))
    missed = sum(not line.met for line in lines)
    print(f"\n{len(lines) - missed} of {len(lines)} targets met.", end=" ")
    print("Quick mode: too few files for the figures to mean anything." if quick else
          "Ratios are medians of the rounds' own ratios.")


def first_line(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, text=True,
                              errors="replace", timeout=10)
        return done.stdout.splitlines()[0].strip() if done.stdout else ""
    except (OSError, subprocess.SubprocessError):
        return None


def machine_description():
    model = None
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.lower().startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cpu": model or platform.machine(), "cpus": len(os.sched_getaffinity(0)),
            "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "system": platform.release(),
            "tar": first_line(["tar", "--version"]), "zstd": first_line(["zstd", "--version"]),
            "openssl": first_line(["openssl", "version"])}


def write_json(path, settings, corpus, lines: List[Line], failures):
    result = {"machine": machine_description(), "settings": settings, "corpus": corpus,
              "lines": [line.as_json() for line in lines], "failures": failures}
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
    os.replace(path + ".part", path)
