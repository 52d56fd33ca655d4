#!/usr/bin/env python3
"""The checks of this folder must be able to fail: each gets a small tree with one fault, and one without.

Prints what went wrong and "N passed, N failed".
"""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FUNCTION = "int f(void)\n{\n%s    return 0;\n}\n"

# (script, file, text, part of the expected output; None: accepted)
CASES = [
    ("layers.py", "lib/io/a.c", '#include "base/buf.h"\n#include <stdio.h>\n', None),
    ("layers.py", "lib/pack/a.c", '#include "shard/tar.h"\n#include <shardpack/pack.h>\n', None),
    ("layers.py", "lib/base/a.c", '#include "io/source.h"\n', "base/ must not see io/"),
    ("layers.py", "lib/io/a.c", '#include "image/check.h"\n', "io/ must not see image/"),
    ("layers.py", "lib/shard/a.c", '#include "dataset/table.h"\n', "shard/ must not see dataset/"),
    ("layers.py", "lib/pack/a.c", '#include "load/ring.h"\n', "pack/ must not see load/"),
    ("layers.py", "lib/load/a.c", '  #  include "pack/input.h"\n', "load/ must not see pack/"),
    ("layers.py", "lib/shard/a.c", '#include "tar.h"\n', 'the form is "layer/file.h"'),
    ("layers.py", "lib/new/a.c", "\n", "no layer"),
    ("layers.py", "tools/a.c", '#include "base/buf.h"\n', "outside lib/"),
    ("layers.py", "examples/a.c", "#include <zstd.h>\n", "belongs in lib/shard/frame"),
    ("layers.py", "lib/dataset/a.c", "#include <zstd.h>\n", "belongs in lib/shard/frame"),
    ("layers.py", "lib/pack/a.c", "#include <jpeglib.h>\n", "belongs in lib/image"),
    ("layers.py", "lib/pack/a.c", "#include <openssl/evp.h>\n", "belongs in lib/base/hash.c"),
    ("layers.py", "lib/base/a.c", "#include <glib.h>\n", "new dependency"),
    ("layers.py", "lib/dataset/a.c", "int x = pthread_create(&t, NULL, f, NULL);\n", "spk_thread_start"),
    ("layers.py", "lib/include/shardpack/a.h", '#include "base/buf.h"\n', "public headers"),
    ("sizes.py", "lib/base/a.c", FUNCTION % ("    f();\n" * 76), None),
    ("sizes.py", "lib/base/a.c", FUNCTION % ("    f();\n" * 77), "f: 81 lines, at most 80"),
    ("sizes.py", "lib/base/a.c", "int a;\n" * 500, None),
    ("sizes.py", "lib/base/a.c", "int a;\n" * 501, "501 lines, at most 500"),
    ("sizes.py", "tests/a.py", "def f():\n" + "    pass\n" * 80, "f: 81 lines, at most 80"),
    ("sizes.py", "tests/a", "#!/bin/sh\n" * 501, "501 lines, at most 500"),
    ("format.sh", "lib/base/a.c", FUNCTION % "", None),
    ("format.sh", "lib/base/a.c", "int f(void) { return 0; }\n", "clang-format-violations"),
    ("cppcheck.sh", "lib/base/a.c", FUNCTION % "", None),
    ("cppcheck.sh", "lib/base/a.c", FUNCTION % "    int a[2] = {0};\n    a[2] = 1;\n", "out of bounds"),
    ("headers.sh", "lib/include/shardpack/a.h", "#ifndef A_H\n#define A_H\nint f(void);\n#endif\n", None),
    ("headers.sh", "lib/include/shardpack/a.h", "int f(size_t);\n", "does not compile alone"),
    ("headers.sh", "lib/include/shardpack/a.h", "#ifndef A_H\n#define A_H\nint f(int class);\n#endif\n", "c++"),
    ("headers.sh", "lib/base/a.h", "struct a {\n    int b;\n};\n", "does not compile alone"),
]

EXPORTS = [
    ("#define SPK_API __attribute__((visibility))\nSPK_API void spk_a(void);", "void spk_a(void) {}", "spk_a;", None),
    ("SPK_API void spk_a(void);", "void spk_a(void) {} void spk_b(void) {}", "spk_*;", "spk_b: exported, but"),
    ("SPK_API void spk_a(void);\nSPK_API void spk_b(void);", "void spk_a(void) {}", "spk_a; spk_b;", "spk_b: declared"),
    ("SPK_API void spk_a(void);", "void spk_a(void) {}", "spk_a; spk_old;", "spk_old: in lib/shardpack.map"),
    ("SPK_API void other(void);", "void other(void) {}", "other;", "does not begin with spk_"),
]


def run(command, expected):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if expected is None:
        return done.returncode == 0, done.stdout
    return done.returncode != 0 and expected in done.stdout, done.stdout


def check_tree(root, script, path, text, expected):
    file = root / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    (root / ".clang-format").write_bytes((HERE / "../../.clang-format").read_bytes())
    return run([HERE / script, root], expected)


def check_exports(root, header, source, names, expected):
    (root / "lib/include").mkdir(parents=True)
    (root / "lib/include/a.h").write_text(header)
    (root / "lib/shardpack.map").write_text("A_0 {\n global: %s\n local: *;\n};\n" % names)
    (root / "a.c").write_text(source)
    script = f"-Wl,--version-script={root}/lib/shardpack.map"
    subprocess.run(["cc", "-shared", "-fPIC", script, "-o", root / "a.so", root / "a.c"], check=True)
    return run([HERE / "exports.py", root / "a.so", root], expected)


def main():
    passed = failed = 0
    cases = [(check_tree, case) for case in CASES] + [(check_exports, case) for case in EXPORTS]
    for check, case in cases:
        with tempfile.TemporaryDirectory() as folder:
            good, output = check(pathlib.Path(folder), *case)
        passed += good
        failed += not good
        if not good:
            print(f"FAILED: {case[0]} on {case[1]!r}: expected {case[-1]!r}, got:\n{output}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
