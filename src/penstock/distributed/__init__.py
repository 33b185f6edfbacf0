"""Many processes as one, and one process in the same way.

`groups` opens and closes the process group (gloo on CPU, NCCL on GPU; one process needs no port), and lets ranks
exchange NumPy arrays; `sharding` divides the embedding tables among the ranks, also on one process, where torchrec's
fused kernels are several times faster than ordinary ones; `state` names everything that training changes, for
checkpoints. Importing this package does not import torch; its modules do.
"""
