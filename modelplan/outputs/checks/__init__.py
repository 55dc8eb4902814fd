"""What `check` found out, in the formats that people and continuous integration read."""

#: The version of the JSON document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1
