#!/usr/bin/env python3
"""Refuses source files over 500 lines and functions over 80 lines.

sizes.py [ROOT]: prints one line per offender and exits 1 if there is any. In C a function's body is what stands between
a "{" and a "}" in the first column, which the format check guarantees; its first line is that of its declaration.
"""
import ast
import pathlib
import re
import sys

FILE_LINES = 500
FUNCTION_LINES = 80
# One file on purpose, to be read beside the specification and copied.
LONGER = {"format-spec/reader.py": 720}
TOPS = ("lib", "tools", "tests", "examples", "format-spec")


def c_functions(lines):
    """(name, first line, last line) of each function."""
    start = None
    for i, line in enumerate(lines):
        if line == "{" and start is None:
            start = i
            while start > 0 and re.match(r"[^\s#}/*]|\s+\S", lines[start - 1]) and not lines[start - 1].endswith(";"):
                start -= 1
        elif line == "}" and start is not None:
            head = " ".join(lines[start:i])
            name = re.search(r"(?!START_TEST)\b(\w+)\s*[()]", head)
            yield name[1] if name else "?", start + 1, i + 1
            start = None


def python_functions(lines):
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.lineno, node.end_lineno


def language(file):
    if file.suffix in (".c", ".h", ".py", ".sh"):
        return file.suffix
    if not file.suffix:
        first = file.open("rb").readline()
        if first.startswith(b"#!"):
            return ".py" if b"python" in first else ".sh"
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    bad = 0
    for top in TOPS:
        for file in sorted((root / top).rglob("*")):
            kind = file.is_file() and "corpus" not in file.parts and language(file)
            if not kind:
                continue
            lines = file.read_text().splitlines()
            functions = {".c": c_functions, ".h": c_functions, ".py": python_functions}.get(kind, lambda _: [])
            path = file.relative_to(root).as_posix()
            most = LONGER.get(path, FILE_LINES)
            if len(lines) > most:
                print(f"{path}: {len(lines)} lines, at most {most}")
                bad += 1
            for name, first, last in functions(lines):
                if last - first + 1 > FUNCTION_LINES:
                    print(f"{path}:{first}: {name}: {last - first + 1} lines, at most {FUNCTION_LINES}")
                    bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
