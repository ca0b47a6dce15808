"""Write a file so that it appears complete or not at all."""

import errno
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where nothing is locked and nothing is swept
    fcntl = None  # type: ignore[assignment]

__all__ = ["replacing", "unfinished"]

# The temporary files being written now, for a program that must remove them before it exits.
unfinished: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a temporary file, then rename it to `path` in one atomic step.

    A reader, at any moment and after any crash, sees the old file or the new one, never a part.
    The temporary file is in the same folder (a rename across disks is not atomic) under the
    hidden name `.NAME.<16 hex digits>.partial.SUFFIX`. When the block ends it is flushed to the
    disk and renamed; when the block raises, it is removed and the old file stays.

    A process killed in the block leaves its temporary file behind, and the next write in that
    folder removes it. A writer holds a lock (`flock`) on its temporary file, and the system
    releases the lock when the writer ends, however it ends. So a file of ours without a lock has
    no writer. Some network disks keep locks to one machine. Therefore the first eight of the hex
    digits stand for the machine, and only the machine's own files are removed. Where there are no
    locks (Windows, some network disks) nothing is: delete `.*.partial*` by hand there when nothing
    is being written.

    Of a symbolic link the target is replaced. The permissions are kept (owner and access lists are
    not); a new file gets the usual ones (`umask`). The temporary file has the suffix of `path`;
    close it before the block ends.

    `OSError` is raised, and nothing written, if the folder does not exist or may not be written, or
    if `path` is a folder, is read-only or is not a regular file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "notes.txt")
    >>> with replacing(path) as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> path.read_text()
    'all of it'
    """
    target = Path(os.path.realpath(path))
    permissions = _permissions(target)
    _sweep(target.parent)
    temporary, lock = _create(target, permissions)
    try:
        yield temporary
        _flush(temporary, os.O_WRONLY)
        os.replace(temporary, target)
    except BaseException:  # also KeyboardInterrupt
        with suppress(OSError):  # the first error says more
            temporary.unlink()
        raise
    finally:
        unfinished.discard(temporary)
        if lock is not None:
            os.close(lock)  # after the rename: until then the name must not look abandoned
    if hasattr(os, "O_DIRECTORY"):  # Windows cannot open a folder, and needs no such flush
        _flush(target.parent, os.O_RDONLY)


def _machine() -> str:
    """Return eight hex digits that tell this machine from others on a shared disk."""
    name = os.uname().nodename if hasattr(os, "uname") else ""
    return f"{zlib.crc32(name.encode()):08x}"


def _sweep(folder: Path) -> None:
    """Remove the temporary files of this machine in the folder that no process writes any more."""
    if fcntl is None:
        return
    ours = re.compile(rf"\..*\.{_machine()}[0-9a-f]{{8}}\.partial.*", re.DOTALL)
    with suppress(OSError):  # a folder that cannot be listed can still be written
        for name in os.listdir(folder):
            if ours.fullmatch(name):
                with suppress(OSError):  # locked, so being written; or not ours to touch
                    _remove_if_abandoned(folder / name)


def _remove_if_abandoned(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()  # if its writer has just renamed it, there is no such name any more
    finally:
        os.close(descriptor)


def _permissions(target: Path) -> int | None:
    """Return the permissions of the existing file, or None; raise where we must not write."""
    if not target.parent.is_dir():
        raise _refusal(errno.ENOENT, "its folder does not exist: create it first", target)
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise _refusal(errno.EISDIR, "it is a folder: give the name of a file", target)
    if stat.S_ISLNK(mode):  # `realpath` resolved all others
        raise _refusal(errno.ELOOP, "it is a symbolic link that leads to itself", target)
    if not stat.S_ISREG(mode):  # renaming onto /dev/null would break the machine
        raise _refusal(errno.EINVAL, "it is a device, pipe or socket, not a file", target)
    # A rename asks for the folder's permission alone; a read-only file should stay as it is.
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise _refusal(errno.EACCES, "the file is read-only", target)
    return stat.S_IMODE(mode)


def _create(target: Path, permissions: int | None) -> tuple[Path, int | None]:
    """Make a temporary file for the target; return it and the open file that holds its lock."""
    ending = "".join(target.suffixes[-2:])  # two: pandas looks for .csv.gz
    # 32 characters are enough to recognise the file; all of them might exceed the 255 byte limit.
    stem = target.name.removesuffix(ending)[:32]
    while True:
        digits = _machine() + os.urandom(4).hex()
        temporary = target.with_name(f".{stem}.{digits}.partial{ending}")
        unfinished.add(temporary)  # before it exists: a signal may come at any moment
        try:
            # Not `tempfile`, whose files are 0600 whatever the umask. O_EXCL: no other's file.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            unfinished.discard(temporary)
            continue
        except OSError as error:
            unfinished.discard(temporary)
            message = f"no file can be made in this folder ({error.strerror})"
            raise _refusal(error.errno or errno.EIO, message, temporary.parent) from None
        if permissions is not None:
            os.chmod(temporary, permissions)  # before the first byte: a private file stays private
        if fcntl is None:
            os.close(descriptor)  # Windows renames no file that is open
            return temporary, None
        with suppress(OSError):  # a disk without locks: then nobody can sweep there either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # another process swept it before it was locked
        unfinished.discard(temporary)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refusal(number: int, message: str, path: Path) -> OSError:
    return OSError(number, f"cannot write: {message}", str(path))  # OSError picks its subclass
