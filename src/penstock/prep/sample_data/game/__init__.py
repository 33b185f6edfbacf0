"""Games between two players, as the replay files that a game server leaves: raw data, not yet samples.

`rules` says what there is in the game, `states` draws what a player sees at each decision, `legal` which choices are
open there, and `policy` which of them is made: a planted function of the features and chance. `replays` writes it all
as JSON lines, one file for each player of each match. `examples/game/replays.py` is the function that turns such a
file into samples of 893 features, 7 labels and 7 masks.
"""
