"""Proof that a plan is safe, from the model itself: shares no code with lifetimes, aliasing, order or placement.

Four levels, each stronger and dearer than the one before: *static* (own liveness, a sweep over time and addresses),
*fingerprint replay* (every byte carries the value it should), *value replay* (real values, a poisoned arena) and
*execution* (the runtime itself).
"""
