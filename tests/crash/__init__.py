"""kill -9 under load: what was acknowledged is there, whole; what was not may be sent again."""
