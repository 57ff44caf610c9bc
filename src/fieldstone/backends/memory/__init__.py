"""The reference store: plain dictionaries, nothing kept when the process ends. For tests, trials and Level 0."""
