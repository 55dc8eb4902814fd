"""Proof that one .tflite file computes what another computes, bit for bit, from the two files alone.

Both files are run symbolically: every tensor holds, along each axis, which rows of which map stand in it. The plan of
the second file is then replayed byte by byte. Nothing here is shared with the code that rewrites models.
"""
