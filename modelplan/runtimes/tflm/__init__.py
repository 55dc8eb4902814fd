"""TensorFlow Lite Micro: what its planner and its arena will do with a model, byte for byte."""
