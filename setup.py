"""Build the compiled kernel; everything else is in pyproject.toml."""

from setuptools import Extension, setup

FOLDER = "src/lynceus/models/_kernel"

setup(
    ext_modules=[
        Extension(
            "lynceus.models._kernel._forest",
            sources=[f"{FOLDER}/{name}.c" for name in ("module", "batch", "forest", "acquisition")],
            depends=[f"{FOLDER}/forest.h"],
            # No -ffast-math and no contraction: the same seed must give the same trace on every machine.
            extra_compile_args=["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-pthread"],
            extra_link_args=["-pthread"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            optional=True,  # without a compiler the NumPy twin is used
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},  # one wheel for all later Pythons
)
