"""Messages as bytes, and back: decoded once into typed values, refused with a code."""
