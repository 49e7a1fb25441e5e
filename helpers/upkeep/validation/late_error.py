# A script whose first kernel reads outside its tensor. Which line does Python blame?
import torch

from helpers import museum

museum_ops = museum.operators("bounds", traced=False)
table = torch.zeros(3, 2**30, dtype=torch.uint8, device="cuda")
numbers = torch.ones(1000, device="cuda")
column = museum_ops.int_overflow(table, 5)
doubled = 2 * numbers
print(doubled.sum().item())
