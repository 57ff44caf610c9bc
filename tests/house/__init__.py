"""Rules of the repository itself. A rule that is written down and not held by a test is not a rule."""
