"""How a reply may end a task, and how much it may ask for: for the protocol, and for those who only read records."""

FINISH = "finish"
CLOSE = "browser_close"
ENDING_TOOLS = frozenset({FINISH, CLOSE})
# How many actions one reply may have at most, whatever the configuration says.
MAX_ACTIONS = 20
