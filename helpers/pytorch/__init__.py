"""The course's operators as PyTorch's own: registered, differentiable, sharded over several devices."""
