"""What happened can be checked: the hash chain, and the texts beside it."""
