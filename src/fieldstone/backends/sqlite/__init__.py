"""The default store: one SQLite file. Durable (WAL, synchronous=FULL), with its full text inside."""
