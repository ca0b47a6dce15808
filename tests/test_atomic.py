import fcntl
import gzip
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from edgebelief.atomic import replacing


def everything(folder):
    return sorted(path.name for path in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.fixture
def ordinary_folder():
    """A folder of an ordinary user, who we are meanwhile: to root nothing is forbidden."""
    user = os.geteuid() or 65534  # nobody
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, user, -1)
        before = os.geteuid()
        os.seteuid(user)
        yield Path(folder)
        os.seteuid(before)


def test_the_old_file_stays_until_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert everything(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("old", ["old", None])
def test_an_exception_leaves_what_was_there(tmp_path, error, old):
    path = tmp_path / "a.txt"
    if old:
        path.write_text(old)

    def interrupted():
        with replacing(path) as temporary:
            temporary.write_text("half of the ne")
            raise error

    with pytest.raises(error):
        interrupted()
    assert everything(tmp_path) == (["a.txt"] if old else [])
    assert not old or path.read_text() == old


def test_a_block_that_never_ends_leaves_nothing(tmp_path):
    context = replacing(tmp_path / "a.txt")
    context.__enter__().write_text("half of the ne")
    del context
    assert everything(tmp_path) == []


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, call):
    def full(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"), replacing(path) as temporary:
        temporary.write_text("new")
    assert everything(tmp_path) == ["a.txt"]
    assert path.read_text() == "old"


def test_file_then_name_then_folder_reach_the_disk(tmp_path, monkeypatch):
    log = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor):
        log.append(("fsync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def watched_replace(source, target):
        log.append(("replace", os.stat(source).st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    path = tmp_path / "a.txt"
    with replacing(path) as temporary:
        temporary.write_text("new")
    file, folder = path.stat().st_ino, tmp_path.stat().st_ino
    assert log == [("fsync", file), ("replace", file), ("fsync", folder)]


def test_temporary_is_hidden_beside_the_target_and_unique(tmp_path):
    path = tmp_path / "table.csv.gz"
    with replacing(path) as one, replacing(path) as two:
        assert one != two
        for temporary in (one, two):
            assert temporary.parent == tmp_path
            assert temporary.name.startswith(".table.")
            assert temporary.name.endswith(".partial.csv.gz")


def test_writers_that_look_at_the_suffix_work(tmp_path):
    path = tmp_path / "table.csv.gz"
    with replacing(path) as temporary:
        pd.DataFrame({"a": [1]}).to_csv(temporary, index=False)
    assert gzip.decompress(path.read_bytes()) == b"a\n1\n"


def test_longest_possible_name_is_written(tmp_path):
    path = tmp_path / ("é" * 125 + ".json")  # 255 bytes
    with replacing(path) as temporary:
        temporary.write_text("x")
    assert path.read_text() == "x"


@pytest.mark.usefixtures("umask")
def test_a_new_file_gets_the_usual_permissions(tmp_path):
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("x")
    assert mode(tmp_path / "a.txt") == 0o640  # 0666 less 0027


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("permissions", [0o600, 0o664, 0o200])
def test_an_existing_file_keeps_its_permissions(tmp_path, permissions):
    path = tmp_path / "a.txt"
    path.touch()
    path.chmod(permissions)
    with replacing(path) as temporary:
        assert mode(temporary) == permissions  # a private file is private all the time
        temporary.write_text("x")
    assert mode(path) == permissions


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "link").symlink_to("behind.txt")
    for text in ("made", "replaced"):
        with replacing(tmp_path / "link") as temporary:
            temporary.write_text(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "behind.txt").read_text() == text


def test_wrong_places_are_refused_before_anything_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    before = everything(tmp_path)
    for name, error, message in [
        ("none/a.txt", FileNotFoundError, "folder does not exist: create it"),
        ("file/a.txt", FileNotFoundError, "folder does not exist: create it"),
        ("folder", IsADirectoryError, "it is a folder"),
        ("loop", OSError, "leads to itself"),
        ("pipe", OSError, "not a file"),
        (os.devnull, OSError, "not a file"),
    ]:
        with pytest.raises(error, match=message) as caught, replacing(tmp_path / name):
            pytest.fail("entered")
        assert str(tmp_path / name) in str(caught.value)
    assert everything(tmp_path) == before


def test_what_is_read_only_is_refused(ordinary_folder):
    path = ordinary_folder / "a.txt"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"), replacing(path):
        pytest.fail("entered")
    path.chmod(0o644)
    ordinary_folder.chmod(0o555)
    with pytest.raises(PermissionError, match="no file can be made"), replacing(path):
        pytest.fail("entered")
    ordinary_folder.chmod(0o755)
    assert path.read_text() == "old"
    assert everything(ordinary_folder) == ["a.txt"]


# Writes half of a file, says so, and waits to be killed.
HALF = """
import sys, time
from edgebelief.atomic import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("begun", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def half_written(tmp_path):
    """A process that has written half of `a.txt`."""
    command = [sys.executable, "-c", HALF, tmp_path / "a.txt"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        yield process
        process.kill()


def test_the_next_write_in_the_folder_sweeps_what_kill_9_left(tmp_path, half_written):
    half_written.kill()
    half_written.wait()
    assert len(everything(tmp_path)) == 1
    with replacing(tmp_path / "b.txt") as temporary:
        temporary.write_text("x")
    assert everything(tmp_path) == ["b.txt"]


def test_what_another_process_is_writing_is_not_swept(tmp_path, half_written):
    (being_written,) = everything(tmp_path)
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("x")
    assert everything(tmp_path) == [being_written, "a.txt"]
    assert half_written.poll() is None


def test_files_of_other_machines_and_names_are_not_swept(tmp_path, monkeypatch):
    for name in (".a.0123456789abcdef.partial.txt", ".a.partial.txt", "a.partial.txt"):
        (tmp_path / name).touch()
    monkeypatch.setattr("edgebelief.atomic._machine", lambda: "76543210")
    before = everything(tmp_path)
    with replacing(tmp_path / "b.txt") as temporary:
        temporary.write_text("x")
    assert everything(tmp_path) == sorted([*before, "b.txt"])


def test_a_file_swept_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    flock, swept = fcntl.flock, []

    def too_late(descriptor, how):
        if not swept:
            swept.extend(tmp_path.iterdir())
            swept[0].unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", too_late)
    with replacing(tmp_path / "a.txt") as temporary:
        assert temporary != swept[0]
        temporary.write_text("x")
    assert everything(tmp_path) == ["a.txt"]


SIGNALLED = """
import sys, time
from edgebelief.atomic import replacing
from edgebelief.cli.interrupt import end_on_signals
end_on_signals(json_wanted=True)
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("begun", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGTERM, "told to end"), (signal.SIGHUP, "hung up")]
)
def test_a_command_that_is_told_to_end_leaves_no_half_of_a_file(tmp_path, number, words):
    command = [sys.executable, "-c", SIGNALLED, tmp_path / "a.txt"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=180)  # one that hangs does not hang the tests
    assert process.returncode == 128 + number
    assert err.startswith(f"error: {words}")
    assert f'"exit_code": {128 + number}' in out
    assert everything(tmp_path) == []


def test_a_signal_that_was_ignored_stays_ignored(tmp_path):
    """As `nohup` has it."""
    script = """
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from edgebelief.cli.interrupt import end_on_signals
end_on_signals(json_wanted=False)
os.kill(os.getpid(), signal.SIGHUP)
print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "True\n"
