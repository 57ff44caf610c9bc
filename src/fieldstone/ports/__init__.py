"""Small Protocols with their promises in the docstrings. Every backend passes the class in `fieldstone.testing`."""
