"""The participant `human`: a person plays, on a page of this machine; what they do on it becomes the judge's tools."""
