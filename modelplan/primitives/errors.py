"""The errors a caller can meet: who is at fault decides the class, the class decides the exit code."""


class ModelPlanError(Exception):
    """Base of all errors that modelplan raises deliberately; `exit_code` is that of the command line."""

    exit_code = 2


class ModelError(ModelPlanError):
    """The file cannot be read or is not supported: names the file, the place in it, what was found and expected."""

    exit_code = 3


class RequestError(ModelPlanError):
    """The caller asked for something that does not exist or cannot be combined: names the option and the choices."""

    exit_code = 2


class BrokenPlanError(ModelPlanError):
    """A placement breaks its own problem: names both tensors, their byte ranges and the step."""

    exit_code = 4
