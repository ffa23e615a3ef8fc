"""What hub_torch_test.py starts by `gradcube run`: a trainer whose optimizer makes its own session. Prints its weights."""

import hashlib
import sys

import torch
from gradcube._hub_optimizer import HubOptimizer

torch.manual_seed(int(sys.argv[1]))
model = torch.nn.Linear(40, 3)
optimizer = HubOptimizer(model.parameters(), "sgd", lr=0.1, momentum=0.9, timeout=60)
for step in range(3):
    torch.manual_seed(10 * optimizer.rank + step)
    optimizer.zero_grad()
    model(torch.randn(5, 40)).pow(2).mean().backward()
    optimizer.step()
size = optimizer.size
optimizer.free(60)
weights = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
print(f"of {size}: {hashlib.sha256(weights).hexdigest()}")
