"""The page on which a person plays: what they do on it becomes the judge's tools."""
