"""A model as plain C that needs no interpreter: operators as kernels, a plan of rows, and the file that both become."""

#: Orders of the axes of an .onnx model's inputs and outputs: as it says, or as cameras deliver, channels last.
LAYOUTS = ("nchw", "nhwc")
#: How sums of codes of an .onnx model round: as ONNX says, or as kernels of libraries and of .tflite files do.
ROUNDINGS = ("onnx", "library")
#: The percents of instructions that a percent of RAM is worth.
TIME_PER_RAM = 10.0
#: What each rung adds to the one before.
C_RUNGS = {
    "maps": "each operator computes all of its result",
    "overlaps": "row by row results run into operands",
    "rows": "operators run together row by row, and keep the rows that are still read",
    "again": "operators run again for a map that is read much later",
    "parts": "rows by parts",
    "tiles": "values by tiles, again where these overlap",
}
