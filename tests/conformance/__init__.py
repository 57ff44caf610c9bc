"""Every backend passes the shared classes of fieldstone.testing."""
