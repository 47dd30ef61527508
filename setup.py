"""Builds the compiled kernels with the package, where there is a C compiler; `pyproject.toml` has the
rest.  Without a compiler the package is installed without kernels and runs in numpy and Arrow."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

LIBRARY = "olapdb/native/_kernels.so"


class BuildKernels(build_ext):
    """Runs `olapdb/native/build.py`, by its path: olapdb's requirements are not there yet."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return the file of the library: a plain one, which no Python imports."""
        return LIBRARY

    def build_extension(self, ext: Extension) -> None:
        """Compile the kernels; say why if that is not possible, and go on without them."""
        build = runpy.run_path(str(Path(__file__).parent / "olapdb/native/build.py"))
        target = LIBRARY if self.inplace else Path(self.build_lib) / LIBRARY
        try:
            build["build"](Path(target))
        except build["CompilerMissing"] as missing:
            self.warn(f"olapdb is built without compiled kernels: {missing}")
            ext.optional = True


class Wheel(bdist_wheel):
    """A wheel for any Python 3 on this platform: the library does not use Python's C API."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tags; a wheel without the library is for every platform."""
        if not (Path(self.bdist_dir or "") / LIBRARY).exists():
            return "py3", "none", "any"
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[Extension("olapdb.native._kernels", sources=[], optional=True)],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": Wheel},
)
