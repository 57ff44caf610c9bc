"""How memory shrinks: which units become what, and the short form of those that belong together."""
