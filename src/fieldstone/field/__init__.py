"""The Akashik operations: one file each, readable top to bottom."""
