"""Ways in over the network. Servers hold no rules: they decode with `wire`, call the field, and encode its answer."""
