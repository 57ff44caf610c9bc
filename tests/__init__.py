"""Tests: a mirror of src, and the rooms for what crosses it (house, protocol, crash, fuzz, golden, docs)."""
