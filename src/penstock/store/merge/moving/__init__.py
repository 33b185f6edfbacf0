"""Pass 2: pieces of work that bring samples to their places, and who does them."""
