"""Many processes as one, and one process in the same way.

`groups.process_group` opens and closes the process group (gloo on CPU, NCCL on GPU; one process needs no
port); `collectives.TorchCollectives` lets ranks exchange NumPy arrays; `sharding.shard` divides the
embedding tables among the ranks with torchrec's planner and DistributedModelParallel, also on one process,
where its fused kernels are several times faster than ordinary ones; `state` names everything that training
changes, for checkpoints. Importing this package does not import torch; its modules do.
"""
