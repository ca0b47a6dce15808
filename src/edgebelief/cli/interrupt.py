"""Ctrl-C: the program ends at once, with 130, and leaves no half of a file.

Python raises `KeyboardInterrupt` in the main thread, between two of its own steps. Ours is often in
compiled code for seconds, waits for threads for longer, and an interrupt that falls into one of
JAX's callbacks is lost. So a thread of its own waits for the signal, tidies up, and ends us.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from contextlib import suppress

from ..atomic import unfinished

INTERRUPTED = 130
MESSAGE = "interrupted; nothing was left half-written."


def end_on_interrupt(json_wanted: bool) -> None:
    """End this program at Ctrl-C from now on; a function that is called leaves signals alone."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return  # in the background of a script, where Ctrl-C is meant for others
    if threading.current_thread() is not threading.main_thread():
        return  # where Python lets nobody handle signals
    reader, writer = socket.socketpair()
    writer.setblocking(False)  # as `set_wakeup_fd` asks
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    arguments = reader, writer, json_wanted
    threading.Thread(target=_wait, args=arguments, name="Ctrl-C", daemon=True).start()


def _wait(reader: socket.socket, writer: socket.socket, json_wanted: bool) -> None:
    seen = b""
    while signal.SIGINT not in seen:  # others are somebody else's
        seen = reader.recv(64)
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\r\x1b[K\x1b[?25h")  # the spinner's line, and the cursor it hid
        os.write(2, f"error: {MESSAGE}\n".encode())
    with suppress(OSError):
        if json_wanted:
            answer = {"error": MESSAGE, "exit_code": INTERRUPTED}
            os.write(1, f"{json.dumps(answer, indent=2)}\n".encode())
    for path in list(unfinished):
        with suppress(OSError):
            path.unlink()
    os._exit(INTERRUPTED)
    writer.close()  # kept open until here
