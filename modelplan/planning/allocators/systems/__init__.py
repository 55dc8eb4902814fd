"""Allocators that follow other systems."""
