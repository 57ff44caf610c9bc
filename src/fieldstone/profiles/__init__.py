"""Other protocols' views on a Field. They own no state."""
