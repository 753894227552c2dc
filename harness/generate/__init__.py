"""Drawing: engines behind the draw interface, data recipes, shrinking, the Hypothesis front end."""
