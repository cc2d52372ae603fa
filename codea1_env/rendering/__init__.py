"""What people see in a terminal: texts made safe, an episode, and how far long work is."""
