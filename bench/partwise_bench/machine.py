"""The machine and the versions, which tables of times depend on."""

import os
import pathlib
import platform

from .contestants import PARTWISE
from .load import DISTURBING, is_disturbed
from .store import version_of_package


def description(runs):
    packages = ["scikit-learn", "nmf-torch", "torchnmf", "torch", "numpy", "scipy"]
    versions = ", ".join(f"{name} {version_of_package(name)}" for name in packages)
    days = sorted(run["at"] for run in runs) or ["never"]
    threads = sorted({run["asked"]["threads"] for run in runs})
    builds = sorted({run["version"] for run in runs if run["asked"]["contestant"] in PARTWISE})
    disturbed = sum(map(is_disturbed, runs))
    rows = [
        ("processor", f"{processor()}, {os.cpu_count()} cores"),
        ("memory", f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"),
        ("system", f"{platform.system()} {platform.release()}, Python {platform.python_version()}"),
        ("threads", ", ".join(map(str, threads))),
        ("Partwise", f"program with the digest {', '.join(builds)}"),
        ("peers", versions),
        ("measured", f"{days[0]} to {days[-1]}"),
        ("disturbed", f"{disturbed} of {len(runs)} runs: other processes took more than {DISTURBING} cores"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def processor():
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields = dict(line.split(":", 1) for line in cpuinfo.read_text().splitlines() if ":" in line)
        fields = {name.strip(): value.strip() for name, value in fields.items()}
        name = fields.get("model name", platform.processor())
        family = [f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields]
        widest = max((flag for flag in ("avx2", "avx512f") if flag in fields.get("flags", "").split()), default=None, key=len)
        return ", ".join([name, *family, *([widest] if widest else [])])
    return platform.processor() or platform.machine()
