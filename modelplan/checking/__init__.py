"""The independent checkers: the referee of placements and the verifier of plans and rewritten models."""
