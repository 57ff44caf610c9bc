"""Where things are kept. A backend knows the ports and the core, and no other backend."""
