"""Flipped bits, full disks, failing disks and second openers: what was acknowledged is there, and damage is told."""
