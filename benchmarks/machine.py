"""What a result was measured on: no host names, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("skipgrad", "gensim", "fasttext-wheel", "numpy", "scipy", "pyarrow")


def describe() -> dict[str, object]:
    """CPU, memory, system, compiler and versions."""
    from skipgrad import _native

    compiler = subprocess.run([os.environ.get("CXX", "c++"), "--version"], capture_output=True, text=True, check=False)
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "instruction_sets": _native.instruction_sets(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiler": compiler.stdout.split("\n")[0],
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    """None where it is not installed: the audit needs no peers."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    facts = dict(line.split(":", 1) for line in info.read_text().split("\n\n")[0].splitlines() if ":" in line)
    found = {name.strip(): value.strip() for name, value in facts.items()}
    family = f"family {found.get('cpu family', '?')} model {found.get('model', '?')}"
    return f"{found.get('model name', platform.machine())} ({family}, {found.get('cache size', '?')} cache)"
