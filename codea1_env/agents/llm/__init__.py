"""Language models as players: prompts, engines that generate, and the agent that joins them."""
