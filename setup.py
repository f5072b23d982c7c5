"""Build the compiled kernels; everything else is in pyproject.toml."""

from setuptools import Extension, setup

FOREST, GAUSSIAN = "src/lynceus/models/_kernel", "src/lynceus/models/gaussian"


def extension(name: str, sources: list[str], depends: list[str] | None = None) -> Extension:
    """One compiled module."""
    return Extension(
        name,
        sources=sources,
        depends=depends or [],
        # No -ffast-math and no contraction: the same seed must give the same trace on every machine.
        extra_compile_args=["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-pthread"],
        extra_link_args=["-pthread"],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        py_limited_api=True,
        optional=True,  # without a compiler the NumPy twins are used
    )


setup(
    ext_modules=[
        extension(
            "lynceus.models._kernel._forest",
            [f"{FOREST}/{name}.c" for name in ("module", "batch", "forest", "acquisition")],
            [f"{FOREST}/forest.h"],
        ),
        extension("lynceus.models.gaussian._packed", [f"{GAUSSIAN}/_packed.c"]),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},  # one wheel for all later Pythons
)
