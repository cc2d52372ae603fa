"""The benchmark of algorithms: many short training runs side by side, and what they say together."""
