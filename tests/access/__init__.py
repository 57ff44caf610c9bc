"""Who may do what and see what, held against the table of the contract."""
