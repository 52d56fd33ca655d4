"""Builds the package: pyproject.toml says what it is, this file how its native parts come about.

The C library, its worker program and the command are built by the project's Makefile, so that there is one list of
sources and one set of flags; the extension is linked with the static library. In a checkout the C sources are two
folders up; a source distribution carries a copy of them in csrc/.
"""
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
IN_CHECKOUT = (CHECKOUT / "lib/lib.mk").exists() and (CHECKOUT / "lib/python").resolve() == HERE
ROOT = CHECKOUT if IN_CHECKOUT else HERE / "csrc"
# What `make` needs to build the library, the worker and the command.
SOURCES = ["Makefile", "LICENSE", "lib", "tools", "examples/examples.mk", "tests/tests.mk"]
PROGRAMS = ["shardpack", "shardpack-worker"]


def version():
    text = (ROOT / "lib/include/shardpack/types.h").read_text()
    return re.search(r'SPK_VERSION_STRING "([^"]+)"', text)[1]


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


class CleanBuild(build):
    """Does not carry over files of an earlier build."""

    def run(self):
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildNative(build_ext):
    """Runs make, then links the extension, then puts the programs beside it."""

    def make(self):
        """The folder with what make has built."""
        build = os.environ.get("SHARDPACK_BUILD")
        if not build:
            build = str((pathlib.Path(self.build_temp) / "native").resolve())
        targets = [f"{build}/{name}" for name in ("libshardpack.a", *PROGRAMS)]
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        try:
            environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
            subprocess.run(["make", "--no-print-directory", jobs, f"BUILD={build}", *targets], check=True, cwd=ROOT,
                           env=environment)
        except (OSError, subprocess.CalledProcessError) as problem:
            raise SystemExit(
                f"shardpack: the C library could not be built ({problem}). It needs gcc, make, pkg-config and the "
                f"packages that {ROOT}/tests/packages.txt lists as `build`: see README.md, Python."
            ) from None
        return pathlib.Path(build)

    def build_extension(self, ext):
        built = self.make()
        libraries = output("make", "--no-print-directory", "--silent", "print-libs").split()
        ext.include_dirs = [str(ROOT / "lib/include")]
        ext.extra_objects = [str(built / "libshardpack.a")]
        ext.depends = ext.extra_objects
        ext.extra_link_args = [*libraries, "-Wl,--exclude-libs,ALL,-S", "-lm", "-pthread"]
        super().build_extension(ext)
        package = pathlib.Path(self.get_ext_fullpath(ext.name)).parent / "_bin"
        package.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            shutil.copy2(built / name, package / name)
            if os.environ.get("SHARDPACK_STRIP", "1") == "1":
                subprocess.run(["strip", "--strip-debug", package / name], check=False)


class NativeSources(sdist):
    """A source distribution with the C sources in csrc/."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in SOURCES:
            source, target = ROOT / name, pathlib.Path(base_dir) / "csrc" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("python", "build", "__pycache__", "*.o"))
            else:
                shutil.copy2(source, target)


class Binary(Distribution):
    def has_ext_modules(self):
        return True


def folders():
    """In a checkout everything that is made lies under its build/."""
    if not IN_CHECKOUT:
        return {}
    base = CHECKOUT / "build/python"
    base.mkdir(parents=True, exist_ok=True)
    return {"build": {"build_base": str(base)}, "egg_info": {"egg_base": str(base)}}


setup(
    version=version(),
    distclass=Binary,
    ext_modules=[
        Extension(
            "shardpack._core",
            sorted(f"src/{path.name}" for path in (HERE / "src").glob("*.c")),
            py_limited_api=True,
            extra_compile_args=["-std=c11", "-fvisibility=hidden"],
        )
    ],
    cmdclass={"build": CleanBuild, "build_ext": BuildNative, "sdist": NativeSources},
    options={"bdist_wheel": {"py_limited_api": "cp311"}, **folders()},
)
