"""Reading and editing .tflite files."""
