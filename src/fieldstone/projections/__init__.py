"""Views of the log that can be thrown away and built again."""
