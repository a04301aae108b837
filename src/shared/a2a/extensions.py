"""The extensions of A2A that our own agents declare in their cards; other agents and judges notice nothing of them.

Specification: https://a2a-protocol.org/v1.0.0/specification/ (Extensions).
"""

# After the last observation of an attempt, a judge sends one more message, without text, whose request has this key in
# its metadata. No reply is expected.
ATTEMPT_END = "urn:wabe:a2a:attempt-end:1"
# What the program behind an agent could reach, as the agent says: its parameter is `isolation`, one of `ISOLATIONS`.
ISOLATION = "urn:wabe:a2a:isolation:1"
NOT_ISOLATED, TOOLS_OFF, NETWORK_ONLY = ISOLATIONS = ("none", "tools off", "network")
