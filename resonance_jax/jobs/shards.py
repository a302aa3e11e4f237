"""How the chunks of a store are divided between jobs."""

import re
from typing import NamedTuple, Self

import jax


class Shard(NamedTuple):
    """Which of the jobs that share a store this one is, counted from 1."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, given: "tuple[int, int] | str | None") -> Self:
        """A shard from (i, n) or "i/n"; None is the whole.

        >>> Shard.parse("2/3")
        Shard(number=2, of=3)
        """
        if given is None:
            return cls()
        match = re.fullmatch(r"(\d+)/(\d+)", given, re.ASCII) if isinstance(given, str) else None
        numbers = (int(match[1]), int(match[2])) if match else given
        if (
            not isinstance(numbers, tuple)
            or len(numbers) != 2
            or any(not isinstance(each, int) or isinstance(each, bool) for each in numbers)
            or not 1 <= numbers[0] <= numbers[1]
        ):
            raise ValueError(f"shard must be i/n with i from 1 to n, got {given!r}; of three jobs the first is 1/3")
        return cls(*numbers)

    def chunks(self, num_chunks: int) -> list[int]:
        """Every n-th chunk, so that expensive regions spread over the shards; then this process's share."""
        return list(range(self.number - 1, num_chunks, self.of))[jax.process_index() :: jax.process_count()]


ALL = Shard()
