"""What the benchmarks share; the scoring and the rivals are in `reproduction`.

A script has its own folder on the path but not the root of the repository: importing this module
adds it, so that `reproduction` can be imported afterwards.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints a module's docstring as it is written."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
