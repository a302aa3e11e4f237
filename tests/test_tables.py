"""Reading files: every format gives the same table, and every way a file can be wrong has its message."""

import itertools
import re
import sys
import tracemalloc

import numpy as np
import pytest
import xarray as xr
import zarr

from resonance_jax.streams import _source, _text, tables

N = 250
VALUES = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
NAMES = ("wind", "rain", "temp")


def write_text(path, values=VALUES, *, delimiter=",", header=NAMES):
    lines = [delimiter.join(header)] if header else []
    lines += [delimiter.join(map(str, row)) for row in values.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def csv_file(folder):
    return write_text(folder / "data.csv")


def semicolons(folder):
    return write_text(folder / "data.csv", delimiter=";")


def tsv_file(folder):
    return write_text(folder / "data.tsv", delimiter="\t")


def txt_file(folder):
    return write_text(folder / "data.txt", delimiter="   ")


def savetxt_file(folder):
    np.savetxt(folder / "data.txt", VALUES, header=" ".join(NAMES))
    return folder / "data.txt"


def quoted(folder):
    """A column of text with commas, quotes and line breaks, which is not asked for."""
    rows = ['"a ""note"", of\ntwo lines",' + ",".join(map(str, row)) for row in VALUES.tolist()]
    (folder / "data.csv").write_text("\n".join(["note," + ",".join(NAMES), *rows]))
    return folder / "data.csv"


def structured(folder):
    array = np.rec.fromarrays(list(VALUES.T), names=list(NAMES))
    np.save(folder / "data.npy", array)
    return folder / "data.npy"


def npz_file(folder):
    np.savez(folder / "data.npz", **dict(zip(NAMES, VALUES.T, strict=True)), name="station 7", levels=np.arange(4))
    return folder / "data.npz"


def compressed(folder):
    np.savez_compressed(folder / "data.npz", **dict(zip(NAMES, VALUES.astype(np.float64).T, strict=True)))
    return folder / "data.npz"


def dataset(folder):
    """Variables of one dimension, beside a coordinate and a variable of another dimension."""
    columns = {name: ("time", column) for name, column in zip(NAMES, VALUES.T, strict=True)}
    coords = {"time": np.arange(N).astype("datetime64[h]").astype("datetime64[ns]")}
    xr.Dataset({**columns, "levels": ("level", np.arange(4.0))}, coords).to_zarr(
        folder / "data.zarr", consolidated=False
    )
    return folder / "data.zarr"


def labelled(folder):
    """A 2-D variable whose second dimension names the columns."""
    variable = xr.DataArray(VALUES, dims=("time", "feature"), coords={"feature": np.array(NAMES, object)})
    chunks = {"x": {"chunks": (60, 2)}}
    xr.Dataset({"x": variable}).to_zarr(folder / "data.zarr", zarr_format=2, encoding=chunks)
    return folder / "data.zarr"


def group(folder):
    """Arrays that Zarr wrote without xarray."""
    root = zarr.open_group(folder / "data.zarr", mode="w")
    for name, column in zip(NAMES, VALUES.T, strict=True):
        root.create_array(name, data=column, chunks=(64,))
    return folder / "data.zarr"


def parquet(folder):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(NAMES, VALUES.T, strict=True))
    pq.write_table(pa.table({"day": ["Monday"] * N, **columns}), folder / "data.parquet", row_group_size=70)
    return folder / "data.parquet"


NAMED = (
    csv_file,
    semicolons,
    tsv_file,
    txt_file,
    savetxt_file,
    quoted,
    structured,
    npz_file,
    compressed,
    dataset,
    labelled,
    group,
    parquet,
)


def npy_file(folder):
    np.save(folder / "data.npy", VALUES)
    return folder / "data.npy"


def fortran(folder):
    np.savez(folder / "data.npz", np.asfortranarray(VALUES))
    return folder / "data.npz"


def one_array(folder):
    np.savez_compressed(folder / "data.npz", VALUES)
    return folder / "data.npz"


def zarr_array(folder):
    zarr.create_array(folder / "data.zarr", data=VALUES, chunks=(60, 2))
    return folder / "data.zarr"


def no_header(folder):
    return write_text(folder / "data.csv", header=None)


UNNAMED = (npy_file, fortran, one_array, zarr_array, no_header)


@pytest.fixture(params=[2**18, 100], ids=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Files in one block of the reader, and in many."""
    for module in (_source, _text, tables._arrays, tables._parquet):
        monkeypatch.setattr(module, "BLOCK", request.param)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("write", NAMED)
def test_formats_with_names(tmp_path, write):
    path = write(tmp_path)
    table = tables.read(path)
    order = [table.names.index(name) for name in NAMES]  # variables of a Zarr store come in alphabetical order
    np.testing.assert_array_equal(table.inputs[:, order], VALUES)
    assert table.inputs.dtype == np.float32
    assert table.inputs.flags.c_contiguous
    assert table.targets is None
    table = tables.read(str(path), ["temp", "wind"], "rain", rows=99)
    np.testing.assert_array_equal(table.inputs, VALUES[:99, [2, 0]])
    np.testing.assert_array_equal(table.targets, VALUES[:99, 1])
    assert table.targets.dtype == np.float32
    assert (table.names, table.left_out) == (("temp", "wind"), ())
    assert set(tables.read(path, target="rain").names) == {"wind", "temp"}


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("write", UNNAMED)
def test_formats_without_names(tmp_path, write):
    path = write(tmp_path)
    table = tables.read(path)
    np.testing.assert_array_equal(table.inputs, VALUES)
    assert table.names == ("0", "1", "2")
    table = tables.read(path, [2, "0"], 1)  # a number, or its text
    np.testing.assert_array_equal(table.inputs, VALUES[:, [2, 0]])
    np.testing.assert_array_equal(table.targets, VALUES[:, 1])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("write", NAMED + UNNAMED)
@pytest.mark.parametrize("rows", [1, 70, N, 10 * N])
def test_parts_are_the_rows_of_read(tmp_path, write, rows):
    path = write(tmp_path)
    target = "rain" if write in NAMED else 1
    whole = tables.read(path, target=target)
    pieces = list(tables.parts(path, target=target, rows=rows))
    assert [len(piece.inputs) for piece in pieces[:-1]] == [rows] * (len(pieces) - 1)
    assert 1 <= len(pieces[-1].inputs) <= rows
    np.testing.assert_array_equal(np.concatenate([piece.inputs for piece in pieces]), whole.inputs)
    np.testing.assert_array_equal(np.concatenate([piece.targets for piece in pieces]), whole.targets)
    assert {(piece.names, piece.left_out) for piece in pieces} == {(whole.names, whole.left_out)}


def large(folder, suffix):
    """A file of 400,000 numbers: 1.6 MB as float32, 3.2 MB as stored."""
    path, values = folder / f"large{suffix}", np.arange(400_000.0)
    if suffix == ".csv":
        write_text(path, values[:, None], header=None)
    elif suffix == ".npy":
        np.save(path, values)
    elif suffix == ".npz":
        np.savez_compressed(path, x=values)
    elif suffix == ".zarr":
        zarr.create_array(path, data=values, chunks=(5000,))
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"x": values}), path, row_group_size=5000)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".zarr", ".parquet"])
def test_parts_hold_one_piece(tmp_path, monkeypatch, suffix):
    path = large(tmp_path, suffix)
    for module in (_text, tables._arrays, tables._parquet):
        monkeypatch.setattr(module, "BLOCK", 2000)
    next(tables.parts(path, rows=10))  # imports and caches are not counted
    tracemalloc.start()
    total = 0
    for piece in tables.parts(path, rows=100_000):
        total += int(piece.inputs.sum(dtype=np.float64))
        del piece
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 400_000 * 399_999 // 2
    assert peak < 750_000  # a piece takes 400,000 bytes


def test_parts_read_no_further_than_they_must(tmp_path):
    path = write_text(tmp_path / "data.csv", np.ones((300_000, 1)), header=["a"])
    with path.open("a") as file:
        file.write("broken\n")
    pieces = tables.parts(path, rows=5)
    assert len(list(itertools.islice(pieces, 3))) == 3
    assert tables.read(path, rows=100).inputs.shape == (100, 1)
    with pytest.raises(ValueError, match=r"line 300002: expected a number, got 'broken'"):
        list(pieces)


@pytest.mark.usefixtures("blocks")
def test_more_rows_than_the_first_ones_suggest(tmp_path):
    texts = ["1.0000000000000"] * 100 + [str(i % 10) for i in range(5000)]
    (tmp_path / "data.csv").write_text("".join(f"{text},{text}\n" for text in texts))
    for rows in (None, 4000):
        table = tables.read(tmp_path / "data.csv", [0], 1, rows=rows)
        expected = np.array(texts, dtype=np.float32)[:rows]
        np.testing.assert_array_equal(table.inputs[:, 0], expected)
        np.testing.assert_array_equal(table.targets, expected)


def test_fast_and_careful_text_agree(tmp_path, monkeypatch):
    texts = ["1", "-2.5", " 3.25", "1e-3 ", "+7", "0.1", "123456789.123", "1E5", ".5", "5."]
    path = tmp_path / "data.csv"
    path.write_text("a,b\r\n" + "".join(f"{x},{y}\r\n" for x, y in itertools.product(texts, texts)))
    fast = tables.read(path)
    assert fast.inputs.shape == (100, 2)
    monkeypatch.setattr(_text, "_fast", lambda *_: None)
    np.testing.assert_array_equal(tables.read(path).inputs, fast.inputs)


@pytest.mark.parametrize(
    "note", ["plain", '"quoted"', '"a,b"', '"a ""b"", c"', '"two\nlines"', ' "a, 7, b"', 'a "b" c', "'"]
)
def test_notes_do_not_move_columns(tmp_path, monkeypatch, note):
    path = tmp_path / "data.csv"
    path.write_text("x,note,y\n" + "".join(f'{i},{note},"{-i}"\n' for i in range(50)))
    monkeypatch.setattr(_text, "BLOCK", 30)
    table = tables.read(path, target="y")
    assert (table.names, table.left_out) == (("x",), ("note",))
    np.testing.assert_array_equal(table.inputs[:, 0], np.arange(50))
    np.testing.assert_array_equal(table.targets, -np.arange(50))


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("1,2\n3,4\n", ("0", "1"), 2),
        ("a,2\n3,4\n", ("a", "2"), 1),  # text above a number
        ("2001,2002\n3,4\n", ("0", "1"), 2),  # numbers are never a header
        ("a,b\n1,2\n3,4\n\n\n", ("a", "b"), 2),  # blank lines at the end
        ("\ufeffa,b\n1,2\n3,4", ("a", "b"), 2),  # byte order mark; no end of line
        ("a\n1\n2\n", ("a",), 2),
        ("'a b'\n1\n2\n", ("'a b'",), 2),
    ],
)
def test_headers(tmp_path, text, names, rows):
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    if rows < 2:
        text += "5,6\n"
        path.write_text(text)
        rows += 1
    table = tables.read(path)
    assert (table.names, len(table.inputs)) == (names, rows)


def test_columns_without_numbers_are_left_out_and_named(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(",day,wind,weather\n0,2020-01-01,1.5,rain\n1,2020-01-02,2.5,\n")
    table = tables.read(path)
    assert (table.names, table.left_out) == (("wind",), ("column 0", "day", "weather"))  # an index has no name
    assert tables.read(path, ["column 0", "wind"]).inputs.tolist() == [[0.0, 1.5], [1.0, 2.5]]
    path.write_text("2020-01-01,1.5\n2020-01-02,2.5\n")
    assert tables.read(path)[2:] == (("1",), ("0",))
    assert tables.read(npz_file(tmp_path)).left_out == ("name", "levels")
    assert tables.read(dataset(tmp_path)).left_out == ("levels",)


def test_a_matrix_is_picked_by_its_name(tmp_path):
    np.savez(tmp_path / "data.npz", x=VALUES[:, :2], y=VALUES[:, 2], flag=VALUES[:, 0] > 0)
    table = tables.read(tmp_path / "data.npz", "x", "y")
    np.testing.assert_array_equal(table.inputs, VALUES[:, :2])
    assert table.names == ("x_0", "x_1")
    assert tables.read(tmp_path / "data.npz", "x_1").names == ("x_1",)
    np.testing.assert_array_equal(tables.read(tmp_path / "data.npz", "flag").inputs[:, 0], VALUES[:, 0] > 0)
    with pytest.raises(ValueError, match=r"target must be one column of .*data.npz, got 'x' with 2; pick one of them"):
        tables.read(tmp_path / "data.npz", target="x")


def test_labels_that_two_variables_share(tmp_path):
    variable = xr.DataArray(VALUES, dims=("time", "feature"), coords={"feature": np.array(NAMES, object)})
    xr.Dataset({"x": variable, "y": 2 * variable}).to_zarr(tmp_path / "data.zarr", consolidated=False)
    assert tables.read(tmp_path / "data.zarr").names == ("x_0", "x_1", "x_2", "y_0", "y_1", "y_2")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("data.csv", "", "data.csv is empty; give a file with rows of numbers"),
        ("data.csv", "\n\n", "data.csv is empty; give a file with rows of numbers"),
        ("data.csv", "a,b\n", "data.csv must have at least 2 rows of data, got 0; give a longer file"),
        ("data.csv", "a,b\n1,2\n", "data.csv must have at least 2 rows of data, got 1; give a longer file"),
        ("data.csv", "1,2\n", "must have at least 2 rows of data, got 1"),
        ("data.csv", "a,b\n1,2\n3\n", "line 3: expected 2 values as in the first row, got 1; rows must be of equal"),
        ("data.csv", "a,b\n1,2\n3,4,5\n", "line 3: expected 2 values as in the first row, got 3"),
        ("data.txt", "a b\n1 2\n3 4 5\n", "line 3: expected 2 values as in the first row, got 3"),
        ("data.csv", "a,b\n1,2\n3,\n", "column 'b' of .*data.csv, line 3: expected a number, the value is "
         "missing; drop the row or fill in the value"),
        ("data.csv", "a,b\n1,NA\n3,4\n", "column 'b' of .*, line 2: expected a number, got 'NA'; drop the row or"),
        ("data.csv", "NA,3\n1,2\n", "column '0' of .*, line 1: expected a number, got 'NA'"),
        ("data.csv", "a,b\n1,2\nnan,4\n", "column 'a' of .*, line 3: expected a number, the value is missing"),
        ("data.csv", "a,b\n1,2\n3,-inf\n", "column 'b' of .*, line 3: expected a finite number, got -inf; drop"),
        ("data.csv", "a,b\n1,2\n3,1e39\n", "line 3: 1e\\+39 does not fit into 32-bit floating point; rescale the"),
        ("data.csv", "a,b\n1,2\n3,x4\n", "line 3: expected a number, got 'x4'; leave the column out or turn it into"),
        ("data.csv", "a\n1\n\n3\n", "line 3 is blank, with data below it; remove the line or fill in its values"),
        ("data.csv", "a,b\n1,2\n\n3,4\n", "line 3 is blank, with data below it"),
        ("data.csv", "a,a\n1,2\n3,4\n", "data.csv has two columns named 'a'; rename one of them"),
        ("data.csv", "a,b\nx,y\nz,w\n", "data.csv has no column of numbers for the inputs, it has a, b; write"),
        ("data.csv", "1,5;2,5\n3,5;4,5\n5,5;6,5\n", "has no column of numbers for the inputs, it has 1,5, 2,5"),
        ("data.csv", 'a,b\n"1\n",2\n3,x\n', "line 4: expected a number, got 'x'"),
        ("data.xlsx", "a", "must end in one of .csv, .tsv, .txt, .npy, .npz, .parquet, .zarr, got '.xlsx'; convert"),
        ("data", "a", "data must end in one of .*, got ''; convert or rename the file"),
        ("data.npy", "a,b", "cannot read .*data.npy: .*; the file is damaged or is not what its suffix says, write it"),
        ("data.npz", "a,b", "cannot read .*data.npz: File is not a zip file; the file is damaged"),
        ("data.zarr", "a", "data.zarr must be a folder, got a file; give the folder that holds the data"),
    ],
)  # fmt: skip
def test_files_that_are_refused(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        tables.read(path)
    with pytest.raises(ValueError, match=message):
        list(tables.parts(path, rows=1))


@pytest.mark.parametrize("at", range(2, 40))
@pytest.mark.parametrize("line", ["1", "1,2,3", "1,", ""])
def test_a_bad_line_is_found_wherever_it_stands(tmp_path, monkeypatch, at, line):
    monkeypatch.setattr(_text, "BLOCK", 20)
    lines = ["a,b"] + ["1,2"] * 40
    lines[at - 1] = line
    (tmp_path / "data.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=rf"line {at}\b"):
        tables.read(tmp_path / "data.csv")


def test_arguments_that_are_refused(tmp_path):
    path = csv_file(tmp_path)
    cases = [
        (dict(columns=["wnd"]), "no column 'wnd' in .*data.csv, which has wind, rain, temp; did you mean 'wind'?"),
        (dict(target="pressure"), "no column 'pressure' in .*, which has wind, rain, temp; pick one of these"),
        (dict(columns=[0]), "no column '0' in .*, which has wind, rain, temp; pick one of these"),
        (
            dict(columns=["wind", "rain"], target="rain"),
            "target 'rain' is also one of the columns; take it out of them",
        ),
        (dict(columns=["wind", "wind"]), "columns must differ, got 'wind' twice; name it once"),
        (
            dict(columns=[]),
            "columns must name at least one column, got none; leave them out to take every one of numbers",
        ),
        (dict(rows=0), "rows must be a whole number of at least 1, got 0; it is the number of rows to read"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message.replace("?", r"\?")):
            tables.read(path, **arguments)
    with pytest.raises(
        ValueError, match=r"rows must be a whole number of at least 1, got 2.5; it is the number of rows of"
    ):
        tables.parts(path, rows=2.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"no column 'z'"):  # before the first piece is taken
        tables.parts(path, ["z"], rows=5)
    wide = write_text(tmp_path / "wide.csv", np.ones((2, 30)), header=[f"c{i}" for i in range(30)])
    with pytest.raises(ValueError, match=r"which has c0, .*, c19 and 10 more"):
        tables.read(wide, ["temperature"])


def test_paths_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no file .*nothing.csv; check its name and folder"):
        tables.read(tmp_path / "nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    for folder in (tmp_path, tmp_path / "folder.csv"):
        with pytest.raises(ValueError, match=re.escape(f"{folder} must be a file, got a folder; give the file that")):
            tables.read(folder)


def test_text_asked_for_by_name(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("day,wind\n2020-01-01,1\n2020-01-02,2\n")
    with pytest.raises(
        ValueError, match=r"column 'day' of .*, line 2: expected a number, got '2020-01-01'; leave the col"
    ):
        tables.read(path, ["day"])
    np.savez(tmp_path / "data.npz", x=np.arange(3), day=np.arange(3).astype("datetime64[D]"), z=np.array([1, 2j, 3]))
    with pytest.raises(ValueError, match=r"column 'day' of .*, row 1: expected a number, got '1970-01-01'"):
        tables.read(tmp_path / "data.npz", ["x"], "day")
    with pytest.raises(ValueError, match=r"column 'z' of .*, row 1: expected a number, got '\(1\+0j\)'"):
        tables.read(tmp_path / "data.npz", ["z"])


def test_a_quote_that_is_never_closed(tmp_path):
    path = tmp_path / "data.csv"
    for at in (3, 150, 200):
        lines = ["x,note"] + ["1,fine"] * 200
        lines[at] = '1,"open'
        path.write_text("\n".join(lines))
        with pytest.raises(ValueError, match=r"cannot read .*data.csv: unexpected end of data; write the file again"):
            tables.read(path)


def test_text_that_is_no_text(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes("a,b\n1,2\n3,4\n".encode("utf-16"))
    with pytest.raises(
        ValueError, match=r"cannot read .*data.csv: 'utf-8' codec can't decode .*; write the file again as"
    ):
        tables.read(path)


def test_arrays_that_are_refused(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.array([[1.0, 2.0], [3.0, np.nan], [np.inf, 1.0]]))
    with pytest.raises(ValueError, match=r"column '0' of .*data.npy, row 3: expected a finite number, got inf"):
        tables.read(path)
    with pytest.raises(
        ValueError, match=r"column '1' of .*data.npy, row 2: expected a number, the value is missing; drop"
    ):
        tables.read(path, [1])
    assert tables.read(path, [0], rows=2).inputs.tolist() == [[1.0], [3.0]]
    for shape in ((), (2, 2, 2)):
        np.save(path, np.ones(shape))
        with pytest.raises(
            ValueError, match=rf"must hold an array of rows and columns, got shape {re.escape(str(shape))}; re"
        ):
            tables.read(path)
    for rows in (0, 1):
        np.save(path, np.ones((rows, 4)))
        with pytest.raises(ValueError, match=rf"must have at least 2 rows of data, got {rows}"):
            tables.read(path)
    np.save(path, np.array([1, None]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"cannot read .*data.npy: .*Python objects"):
        tables.read(path)


def test_archives_that_are_refused(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, x=np.arange(10.0), y=np.arange(9.0), cube=np.ones((10, 2, 2)), objects=np.array([1, None] * 5))
    assert tables.read(path)[2:] == (("x",), ("y", "cube", "objects"))
    with pytest.raises(
        ValueError, match=r"columns of .* must have as many rows as each other, got x 10, y 9; pick others"
    ):
        tables.read(path, ["x"], "y")
    with pytest.raises(
        ValueError, match=r"'cube' of .* must have 1 or 2 dimensions, got shape \(10, 2, 2\); reshape it"
    ):
        tables.read(path, ["cube"])
    with pytest.raises(ValueError, match=r"cannot read .*data.npz"):
        tables.read(path, ["objects"])
    np.savez(path, x=np.arange(1000.0))
    path.write_bytes(path.read_bytes().replace(np.float64(500).tobytes(), np.float64(501).tobytes()))
    with pytest.raises(ValueError, match=r"cannot read .*data.npz: Bad CRC-32 .*; the file is damaged"):
        tables.read(path)


def test_zarr_that_is_refused(tmp_path):
    (tmp_path / "data.zarr").mkdir()
    with pytest.raises(ValueError, match=r"cannot read .*data.zarr: .*; the file is damaged"):
        tables.read(tmp_path / "data.zarr")
    path = group(tmp_path / "group")
    (path / "wind" / "zarr.json").write_text("{}")
    with pytest.raises(ValueError, match=r"cannot read .*data.zarr: .*; the file is damaged"):
        tables.read(path)
    path = zarr_array(tmp_path / "array")
    next(file for file in (path / "c").rglob("*") if file.is_file()).write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"cannot read .*data.zarr: .*; the file is damaged"):
        tables.read(path)


def test_parquet_that_is_refused(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    path.write_text("a,b")
    with pytest.raises(ValueError, match=r"cannot read .*data.parquet: .*; the file is damaged"):
        tables.read(path)
    days = np.arange(3).astype("datetime64[D]")
    pq.write_table(pa.table({"x": [1, None, 3], "day": days, "name": ["a", "b", "c"], "on": [True, False, True]}), path)
    with pytest.raises(ValueError, match=r"column 'x' of .*, row 2: expected a number, the value is missing"):
        tables.read(path)
    with pytest.raises(ValueError, match=r"column 'name' of .*, row 1: expected a number, got 'a'"):
        tables.read(path, ["name"])
    assert tables.read(path, "on", rows=2)[0].tolist() == [[1.0], [0.0]]
    pq.write_table(pa.table({"x": [1, 2], "__index_level_0__": [0, 1]}), path)  # as pandas stores an index
    assert tables.read(path)[2:] == (("x",), ("__index_level_0__",))
    pq.write_table(pa.table({"x": [1], "day": days[:1]}), path)
    with pytest.raises(ValueError, match=r"must have at least 2 rows of data, got 1"):
        tables.read(path)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "data.parquet").write_text("PAR1")
    with pytest.raises(
        ValueError, match=r"data.parquet needs pyarrow, which is not installed; run `pip install pyarrow`"
    ):
        tables.read(tmp_path / "data.parquet")
