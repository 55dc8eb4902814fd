"""What a firmware compiles or links: models, arenas, self-tests, and layouts of several memories."""
