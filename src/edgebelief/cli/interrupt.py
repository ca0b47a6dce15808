"""Ctrl-C, SIGTERM, SIGHUP: the program ends at once, with 128 + the signal, and no half of a file.

Python handles signals in the main thread, between two of its own steps. Ours is often in compiled
code for seconds, waits for threads for longer, and an interrupt that falls into one of JAX's
callbacks is lost. So a thread of its own waits for the signal, tidies up, and ends us.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from contextlib import suppress

from ..atomic import unfinished

NOTHING_HALF = "nothing was left half-written."
# What is said of each signal: SIGTERM is `kill`'s and a batch system's, SIGHUP a closed terminal's.
WORDS = {"SIGINT": "interrupted", "SIGTERM": "told to end (SIGTERM)", "SIGHUP": "hung up (SIGHUP)"}
INTERRUPTED = 128 + signal.SIGINT
MESSAGE = f"{WORDS['SIGINT']}; {NOTHING_HALF}"


def end_on_signals(json_wanted: bool) -> None:
    """End this program at such a signal from now on; main(arguments) leaves signals alone."""
    if threading.current_thread() is not threading.main_thread():
        return  # where Python lets nobody handle signals
    known = [getattr(signal, name) for name in WORDS if hasattr(signal, name)]  # Windows lacks one
    # Ignored: Ctrl-C in the background of a script, where it is meant for others; SIGHUP by nohup.
    handled = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]
    reader, writer = socket.socketpair()
    writer.setblocking(False)  # as `set_wakeup_fd` asks
    for number in handled:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    arguments = reader, writer, json_wanted, handled
    threading.Thread(target=_wait, args=arguments, name="signals", daemon=True).start()


def _wait(
    reader: socket.socket,
    writer: socket.socket,
    json_wanted: bool,
    handled: list[signal.Signals],
) -> None:
    ending: list[signal.Signals] = []
    while not ending:  # other signals are somebody else's
        seen = reader.recv(64)
        ending = [number for number in handled if number in seen]
    code, message = 128 + ending[0], f"{WORDS[ending[0].name]}; {NOTHING_HALF}"
    for path in list(unfinished):
        with suppress(OSError):
            path.unlink()
    with suppress(OSError):  # a terminal that hung up takes no words
        if os.isatty(2):
            os.write(2, b"\r\x1b[K\x1b[?25h")  # the spinner's line, and the cursor it hid
        os.write(2, f"error: {message}\n".encode())
    with suppress(OSError):
        if json_wanted:
            answer = {"error": message, "exit_code": code}
            os.write(1, f"{json.dumps(answer, indent=2)}\n".encode())
    os._exit(code)
    writer.close()  # kept open until here
