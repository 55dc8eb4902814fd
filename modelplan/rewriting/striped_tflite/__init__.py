"""TFLite models computed stripe by stripe on TFLM: unrolled or in loops, searched, packed, written as a file."""
