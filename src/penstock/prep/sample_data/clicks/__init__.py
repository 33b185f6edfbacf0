"""People who see items and sometimes click.

`users` and `items` are small tables drawn once from the seed: what everyone can see (city, age, interests;
category, price, tags) and what only the planted model knows (biases and taste vectors). A row is a user, an
item and one of the `moments`; `history` says what the user clicked before; `kind` adds everything up and
draws click, buy and watch time.
"""
