"""Files that a firmware compiles or links, with the addresses of a plan for its memories."""
