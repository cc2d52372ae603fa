"""What a worker process does: forks children, runs programs and their tests."""
