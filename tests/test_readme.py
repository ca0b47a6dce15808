"""The code blocks of the documentation run as they stand, in one folder.

Blocks marked ``python`` are executed in one process, then blocks marked ``sh`` in one shell that
stops at the first failure. Blocks without a language (make, activating the environment) are not
executed: they set up what runs this test.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", ["README.md", pytest.param("docs/index.md", marks=pytest.mark.slow), "docs/pieces.md"]
)
def test_blocks_run_in_one_folder(page, tmp_path):
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    assert {language for language, _ in blocks} <= {"python", "sh"}
    scripts = {
        language: "\n".join(text for name, text in blocks if name == language)
        for language in ("python", "sh")
    }
    assert scripts["python"]
    commands = {"python": [sys.executable, "-c"], "sh": ["bash", "-euo", "pipefail", "-c"]}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, script in scripts.items():
        ran = subprocess.run(
            [*commands[language], script],
            cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, f"{language}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}"
