"""The course's operators as full PyTorch operators: registered, differentiable, sharded over several devices."""
