"""Who calls: keys, JSON web tokens, and how often a credential may."""
