"""The words that appear in the `clicks` data, most frequent first."""

CITIES = (
    "lisbon", "porto", "madrid", "paris", "lyon", "berlin", "hamburg", "munich", "vienna", "zurich", "milan",
    "rome", "prague", "warsaw", "budapest", "athens", "oslo", "stockholm", "helsinki", "tallinn", "riga",
    "dublin", "london", "glasgow",
)  # fmt: skip
CATEGORIES = (
    "music", "sports", "news", "travel", "food", "film", "games", "fashion", "tech", "cars", "books",
    "garden", "pets", "health", "art", "science", "history", "money", "crafts", "weather",
)  # fmt: skip
DEVICES = ("phone", "desktop", "tablet", "tv")
TAGS = tuple(f"tag_{number:03d}" for number in range(120))
