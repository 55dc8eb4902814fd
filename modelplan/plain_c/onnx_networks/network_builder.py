"""Makes a network of plain C operator by operator."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.formats.tflite.tflite_file import UNQUANTISED, TensorScales
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.primitives.number_types import nbytes
from modelplan.runtimes.tflm.file import FileOp, FileSubgraph, FileTensor
from modelplan.runtimes.tflm.stated_network import CodeScales, StatedNetwork, StatedOptions

_CODES = {dtype: code for code, dtype in DTYPES.items()}


@dataclass
class NetworkBuilder:
    """Makes a network: tensors and operators in the order in which they run."""

    tensors: list[FileTensor] = field(default_factory=list)
    ops: list[FileOp] = field(default_factory=list)
    scales: dict[int, CodeScales] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    length: int = 0
    names: set[str] = field(default_factory=set)

    def tensor(self, name: str, shape: Sequence[int], dtype: str, scales: CodeScales | None = None) -> int:
        """A tensor that is fed or computed; its number."""
        return self._add(name, tuple(shape), dtype, scales, (0, 0), constant=False)

    def constant(self, name: str, values: npt.NDArray[Any], scales: CodeScales | None = None) -> int:
        """A constant; its number."""
        content = np.ascontiguousarray(values).tobytes()
        place = self.length, len(content)
        self.chunks.append(content)
        self.length += len(content)
        return self._add(name, values.shape, str(values.dtype), scales, place, constant=True)

    def _add(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        scales: CodeScales | None,
        place: tuple[int, int],
        *,
        constant: bool,
    ) -> int:
        number, free = len(self.tensors), name
        while free in self.names:
            free += "'"
        self.names.add(free)
        coded = TensorScales(len(scales.scales), scales.scale, 1, scales.zero, scales.axis) if scales else UNQUANTISED
        if scales:
            self.scales[number] = scales
        self.tensors.append(FileTensor(free, _CODES[dtype], shape, nbytes(dtype, shape), constant, False, coded, place))
        return number

    def exchange_names(self, first: int, second: int) -> None:
        """Gives two tensors each other's name."""
        a, b = self.tensors[first], self.tensors[second]
        self.tensors[first], self.tensors[second] = replace(a, name=b.name), replace(b, name=a.name)

    def dtype(self, tensor: int) -> str:
        """The type of a tensor's elements."""
        return DTYPES[self.tensors[tensor].type]

    def op(self, kind: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> None:
        """An operator with its options."""
        self.ops.append(FileOp(kind, tuple(inputs), tuple(outputs), options=StatedOptions(options)))

    def network(self, name: str, inputs: Sequence[int], outputs: Sequence[int]) -> StatedNetwork:
        """All of it."""
        main = FileSubgraph(tuple(self.tensors), tuple(self.ops), tuple(inputs), tuple(outputs))
        return StatedNetwork(name, b"".join(self.chunks), (main,), scales=self.scales)
