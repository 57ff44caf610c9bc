"""What is true of every field, whatever was asked of it: random calls, and rules that must hold after each."""
