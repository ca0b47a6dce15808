"""`python -m reproduction`. The body is in `shell`, which the processes it starts can import."""

import typer

from .shell import main

if __name__ == "__main__":
    typer.run(main)
