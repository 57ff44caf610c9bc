"""Execution memory: a generation's messages within a token budget."""
