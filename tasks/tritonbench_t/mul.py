"""Product input·other."""

import torch

from ._elementwise import binary

TASK = binary("mul", torch.mul, "input·other, elementwise. Non-finite inputs follow PyTorch: 0·inf is NaN.")
