"""What a child may not do, and the proof of it."""
