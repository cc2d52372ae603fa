"""What the co-evolution is compared with: settings of the training loop, not copies of it."""
