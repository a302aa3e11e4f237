"""Chunks that do not fit into the memory are computed in halves.

A store fixes the shape of its chunks, but the next job may run on a device with less memory.
"""

import math

import numpy as np

from resonance_jax.engine import programs
from resonance_jax.engine.cell import Cell
from resonance_jax.engine.devices import Device, name_of
from resonance_jax.engine.grid import Grid
from resonance_jax.engine.programs import Program
from resonance_jax.engine.shapes import Index, Shape, halved, one_cell_does_not_fit, padded


class Chunks:
    """Computes the chunks of a grid, each as a whole or, if it does not fit into the memory, in halves.

    Args:
        grid: of the sweep.
        chunk_shape: of a chunk in the grid.
        devices: that share each chunk.
    """

    def __init__(self, grid: Grid, chunk_shape: Shape, devices: tuple[Device, ...]) -> None:
        self.grid, self.devices = grid, devices
        self.shape = padded(grid.inner(chunk_shape), len(devices))
        self._compiled: programs.Programs = {}

    @property
    def compiled(self) -> list[Program]:
        return list(self._compiled.values())

    def compile(self, index: Index) -> Program:
        """The program of a chunk, or of half a chunk if the whole does not fit into the memory."""
        key = self.grid.key(index)
        if key not in self._compiled:
            cell = self.grid.cells[key]
            try:
                program = programs.compile_chunk(cell, self.grid.mapped, self.shape, self.devices)
            except MemoryError:
                program = self._compile_half(cell)
            self._compiled[key] = program
        return self._compiled[key]

    def compute(self, index: Index) -> list[np.ndarray]:
        """The outputs of a chunk. If this chunk had to be halved, the next ones are halved from the start."""
        program = self.compile(index)
        try:
            return programs.run(program, self.grid, index)
        except MemoryError:
            if program.shape != self.shape:  # a half already
                raise self._too_large() from None
        key = self.grid.key(index)
        self._compiled[key] = self._compile_half(self.grid.cells[key])
        try:
            return programs.run(self._compiled[key], self.grid, index)
        except MemoryError:
            raise self._too_large() from None

    def _compile_half(self, cell: Cell) -> Program:
        half = halved(self.shape, len(self.devices))
        if half is None:
            raise MemoryError(one_cell_does_not_fit(len(self.devices))) from None
        try:
            return programs.compile_chunk(cell, self.grid.mapped, half, self.devices)
        except MemoryError:
            raise self._too_large() from None

    def _too_large(self) -> MemoryError:
        cells = math.prod(self.shape)
        return MemoryError(
            f"a chunk of {cells} cells does not fit into the memory of {name_of(self.devices)}, nor does half of one; "
            f"start a new store with chunk={max(1, cells // 8)}"
        )
