"""What was once written stays readable: stored events, exports and schemas of every version, byte for byte.

`python -m tests.golden.make` adds what is missing. It never rewrites a file: a stored version does not change.
"""
