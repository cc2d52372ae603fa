"""Shows a run elsewhere while it goes on: trackio, TensorBoard, Weights & Biases. A run's files do not depend on it."""
