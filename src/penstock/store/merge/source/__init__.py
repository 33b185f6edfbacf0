"""What is merged: batch files, their headers, and their samples as bytes."""
