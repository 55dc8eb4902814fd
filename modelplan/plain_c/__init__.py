"""A model as plain C that needs no interpreter: operators as kernels, a plan of rows, and the file that both become."""

#: Orders of the axes of an .onnx model's inputs and outputs: as it says, or as cameras deliver, channels last.
LAYOUTS = ("nchw", "nhwc")
#: How sums of codes of an .onnx model round: as ONNX says, or as kernels of libraries and of .tflite files do.
ROUNDINGS = ("onnx", "library")
#: The percents of instructions that a percent of RAM is worth.
TIME_PER_RAM = 10.0
