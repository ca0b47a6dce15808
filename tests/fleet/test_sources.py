import os

import numpy as np
import pandas as pd
import pytest

from edgebelief.data import GraphDataset, save_dataset
from edgebelief.errors import InputError
from edgebelief.fleet.sources import list_folder, size_of
from graph_folders import distances

pytest.importorskip("pyarrow")


def test_sizes_are_those_of_the_files_without_their_contents(tmp_path):
    np.save(tmp_path / "distances.npy", distances(0, 7))
    np.save(tmp_path / "signals.npy", np.zeros((100, 5)))
    np.save(tmp_path / "several.npy", np.zeros((3, 6, 6)))
    frame = pd.DataFrame(np.ones((4, 9)), columns=[f"n{i}" for i in range(9)])
    frame.to_csv(tmp_path / "signals.csv", index=False)
    frame.to_csv(tmp_path / "tabs.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "semicolons.txt", index=False, sep=";")
    frame.to_parquet(tmp_path / "signals.parquet", index=False)
    save_dataset(tmp_path / "set.npz", GraphDataset([np.ones(3), np.ones(10)]))
    sizes = {source.name: source[3:] for source in list_folder(tmp_path).sources}
    assert sizes == {
        "distances.npy": (7, 21),
        "signals.npy": (5, 10),
        "several.npy": (6, 45),
        **dict.fromkeys(["signals.csv", "tabs.tsv", "semicolons.txt"], (9, 36)),
        "signals.parquet": (9, 36),
        "set.npz": (5, 13),
    }


@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.npz", "a.parquet"])
def test_files_that_cannot_be_read_have_no_size(tmp_path, name):
    for content in (b"", b"\x00\xff" if name != "a.csv" else b"\n", None):
        path = tmp_path / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        assert size_of(path) == (0, 0)


def test_other_files_are_left_out_and_hidden_ones_are_not_mentioned(tmp_path):
    for name in ("a.csv", ".a.csv", "notes.md", ".DS_Store"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    (tmp_path / "sub.csv").mkdir()
    listing = list_folder(tmp_path)
    assert [source.name for source in listing.sources] == ["a.csv"]
    assert listing.left_out == ("notes.md", "sub.csv")


def test_companions_have_the_same_stem_or_better_the_same_name(tmp_path):
    for folder, names in {
        "x": ["a.csv", "b.npy", "c.csv"],
        "y": ["a.npy", "a.csv", "b.csv"],
    }.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text("1\n")
    listing = list_folder(tmp_path / "x", {"labels": tmp_path / "y"})
    labels = [source.files.get("labels") for source in listing.sources]
    assert labels == [str(tmp_path / "y" / "a.csv"), str(tmp_path / "y" / "b.csv"), None]


def test_companions_that_could_be_either_are_refused(tmp_path):
    for name in ("x/a.csv", "y/a.tsv", "y/a.npy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    with pytest.raises(InputError, match=r"which holds the labels of 'a.csv'"):
        list_folder(tmp_path / "x", {"labels": tmp_path / "y"})


def test_a_change_of_the_file_or_its_companion_changes_the_stamp(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    for place in ("x", "y"):
        (tmp_path / place / "a.csv").write_text("1\n")
    stamps = [list_folder(tmp_path / "x", {"labels": tmp_path / "y"}).sources[0].stamp]
    for place in ("x", "y"):
        os.utime(tmp_path / place / "a.csv", ns=(0, 10**9))
        stamps.append(list_folder(tmp_path / "x", {"labels": tmp_path / "y"}).sources[0].stamp)
    assert len(set(stamps)) == 3
