"""Every call that takes secrets out of texts is removed in turn, and a test must fail: `python -m tests.mutate`."""
