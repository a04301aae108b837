"""Reads judge models' replies: screenshot scores and reasons, outcome statuses, key points. Pure; linear time."""

from judge.parsing.key_points import parse_key_points as parse_key_points
from judge.parsing.plain_text import without_marks as without_marks
from judge.parsing.scores import parse_reason as parse_reason
from judge.parsing.scores import parse_score as parse_score
from judge.parsing.statuses import Status as Status
from judge.parsing.statuses import parse_status as parse_status
