"""How thorough property tests are: `--hypothesis-profile=thorough` tries many more examples (nightly)."""

from hypothesis import settings

# No deadline: other test workers keep the machine busy, and no test here measures time.
settings.register_profile("fast", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("fast")
