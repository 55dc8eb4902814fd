"""Makes new model files from given ones: edits of flatbuffers and protobufs, offline plans, other operator orders."""
