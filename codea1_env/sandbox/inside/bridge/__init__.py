"""What crosses between a test's process and a program's process: data, and handles of what is not data."""
