"""TFLM's own kernels, which it builds where no other library has one: every operator that it registers."""

from modelplan.runtimes.tflm.kernels import control, custom, elementwise, shaping, weighted
from modelplan.runtimes.tflm.kernels.preparation import Operator

OPERATORS: dict[str, Operator] = {
    **elementwise.OPERATORS,
    **weighted.OPERATORS,
    **shaping.OPERATORS,
    **control.OPERATORS,
    **custom.OPERATORS,
}
