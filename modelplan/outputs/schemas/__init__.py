"""JSON Schemas of the documents that commands write."""
