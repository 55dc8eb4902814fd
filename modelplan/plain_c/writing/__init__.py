"""C as text: the source and header of a plan, the plan as data, and a test of both."""
