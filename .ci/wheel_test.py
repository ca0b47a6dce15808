"""Look at a built wheel, and at the package as it is installed from it.

Run by `make wheel-test` with the Python of an environment that has the wheel and its dependencies,
and nothing of the repository.
"""

import importlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import edgebelief

SOURCE = Path(__file__).parents[1] / "src"

wheel = Path(sys.argv[1])
shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
expected = {
    path.relative_to(SOURCE).as_posix()
    for path in SOURCE.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}
# The whole of the package and nothing else: no tests, no reproduction.
assert shipped == expected, sorted(shipped ^ expected)
# If these move, change them here: a wheel without them works until they are needed.
files = ("py.typed", "report/page.html.j2", "amortise/pretrained.safetensors")
files = (*files, "amortise/typical.safetensors")
assert {f"edgebelief/{name}" for name in files} <= shipped

installed = Path(edgebelief.__file__)
assert SOURCE not in installed.parents, f"{installed} is not the installed package"
for name in edgebelief.__all__:
    public = getattr(edgebelief, name)
    for part in getattr(public, "__all__", ()):
        getattr(importlib.import_module(public.__name__), part)

program = Path(sys.executable).with_name("edgebelief")
version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
assert version.stdout == f"edgebelief {edgebelief.__version__}\n", version.stdout
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([program, "demo", folder], check=True, cwd=folder)
    assert (Path(folder) / "report.html").stat().st_size > 10_000
