"""`make bench`: ours, the bare limit and the peers, in the same run. Standard library only at import."""
