"""A thousand hostile inputs over all commands, and not one lapse (see hostile.py)."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.long
def test_a_thousand_hostile_inputs_give_no_lapse():
    script = Path(__file__).with_name("hostile.py")
    # In a process of its own: it forks, which is safe only before JAX has started threads.
    ran = subprocess.run([sys.executable, script, "--seed", "1"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
