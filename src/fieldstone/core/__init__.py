"""Pure values, events and rules of the Akashik Protocol. No I/O, no clock, no chance."""
