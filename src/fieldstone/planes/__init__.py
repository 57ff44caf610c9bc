"""The three planes: execution memory, transport log, durable transcript."""
