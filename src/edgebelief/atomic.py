"""Write a file so that it appears complete or not at all."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["replacing", "unfinished"]

# The temporary files being written now, for a program that must remove them before it exits.
unfinished: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a temporary file, then rename it to `path` in one atomic step.

    A reader, at any moment and after any crash, sees the old file or the new one, never a part.
    The temporary file is in the same folder (a rename across disks is not atomic) under the
    hidden name `.NAME.<16 random hex digits>.partial.SUFFIX`. When the block ends it is flushed to
    the disk and renamed; when the block raises, it is removed and the old file stays.

    A process killed in the block leaves its temporary file behind. Nothing reads such a file, and
    no later write removes it, because it may belong to another process that is still writing.
    Delete `.*.partial*` by hand when nothing is being written in that folder.

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
    ending = "".join(target.suffixes[-2:])  # two: pandas looks for .csv.gz
    # 32 characters are enough to recognise the file; all of them might exceed the 255 byte limit.
    stem = target.name.removesuffix(ending)[:32]
    temporary = target.with_name(f".{stem}.{os.urandom(8).hex()}.partial{ending}")
    try:
        unfinished.add(temporary)
        _create(temporary, permissions)
        yield temporary
        _flush(temporary, os.O_WRONLY)
        os.replace(temporary, target)
    except BaseException:  # also KeyboardInterrupt
        with suppress(OSError):  # the first error says more
            temporary.unlink()
        raise
    finally:
        unfinished.discard(temporary)
    if hasattr(os, "O_DIRECTORY"):  # Windows cannot open a folder, and needs no such flush
        _flush(target.parent, os.O_RDONLY)


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


def _create(temporary: Path, permissions: int | None) -> None:
    # Not `tempfile`, whose files are 0600 whatever the umask. O_EXCL: never somebody else's file.
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        message = f"no file can be made in this folder ({error.strerror})"
        raise _refusal(error.errno or errno.EIO, message, temporary.parent) from None
    if permissions is not None:
        os.chmod(temporary, permissions)  # before the first byte: a private file stays private


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refusal(number: int, message: str, path: Path) -> OSError:
    return OSError(number, f"cannot write: {message}", str(path))  # OSError picks its subclass
