"""The clauses of the protocol, each proved through every way in: one test, every transport."""
