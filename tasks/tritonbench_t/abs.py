"""Absolute value, elementwise."""

import torch

from ._elementwise import unary

TASK = unary("abs", torch.abs, "Absolute value of input, elementwise; exact. NaN stays NaN.")
