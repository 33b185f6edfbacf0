"""State on disk, whole or absent.

A checkpoint is a directory `step-N`: safetensors files with the tensors (one per rank, divided by
torch.distributed.checkpoint), JSON documents with everything else, and a manifest, written last, that lists
all of it with sizes and checksums. It is written under a hidden name, flushed, and renamed when whole;
opening checks every byte before anything is used. Nothing is ever pickled or unpickled. Importing this
package does not import torch.
"""

from penstock.checkpoint.manifest import TensorDifference, TensorMismatch
from penstock.checkpoint.store import Checkpoint, CheckpointStore, open_checkpoint

__all__ = ["Checkpoint", "CheckpointStore", "TensorDifference", "TensorMismatch", "open_checkpoint"]
