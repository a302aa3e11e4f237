"""Parquet files, through pyarrow."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from resonance_jax.streams._source import BLOCK, Block, Source, check_rows, readable


def open_parquet(path: Path) -> Source:
    """The columns of a Parquet file."""
    try:
        import pyarrow.parquet as pq  # pyright: ignore[reportMissingImports]
        import pyarrow.types as kinds  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError(f"reading {path} needs pyarrow, which is not installed; run `pip install pyarrow`") from None
    with readable(path), pq.ParquetFile(path) as file:
        schema, num_rows = file.schema_arrow, file.metadata.num_rows
    tests: tuple[Any, ...] = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)

    def blocks(picked: Sequence[int]) -> Iterator[Block]:
        check_rows(path, num_rows)
        return _blocks(path, [schema.names[i] for i in picked])

    return Source(
        names=tuple(schema.names),
        numeric=tuple(
            any(test(field.type) for test in tests) and not field.name.startswith("__index_level_")  # of pandas
            for field in schema
        ),
        expected_rows=num_rows,
        blocks=blocks,
    )


def _blocks(path: Path, names: Sequence[str]) -> Iterator[Block]:
    import pyarrow.parquet as pq  # pyright: ignore[reportMissingImports]

    start = 0
    with readable(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=max(1, BLOCK // len(names)), columns=list(names)):
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
            yield columns, lambda i, start=start: f"row {start + i + 1}"
            start += batch.num_rows
