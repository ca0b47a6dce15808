import subprocess
import sys

QUIET = """
import sys
import edgebelief
assert not {"jax", "numpy", "scipy", "networkx", "pandas"} & set(sys.modules), "not lazy"
assert "solve" in dir(edgebelief)
import jax
before = dict(jax.config.values)
from edgebelief import convex, data, networks, readouts, solve, theta_for
changed = {k for k, v in jax.config.values.items() if before.get(k) != v}
assert not changed, changed
assert not {"matplotlib", "sklearn", "mlxtend", "numpyro"} & set(sys.modules)
try:
    edgebelief.nothing
except AttributeError as error:
    assert "nothing" in str(error)
"""


def test_import_is_lazy_silent_and_changes_no_setting():
    done = subprocess.run([sys.executable, "-W", "error", "-c", QUIET], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""
    assert done.stderr == b""
