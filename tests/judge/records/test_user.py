"""Which answer of the user a question gets, and what it permits."""

from hypothesis import given
from hypothesis import strategies as st

from judge.records.user import UserReply, answered, permissions_of

ORDER = UserReply(pattern="(?i)order", permission="place an order", reply="Yes.", grants=("no-order",))
SELLER = UserReply(pattern=".", permission="write to the seller", reply="Rather not.")
# As recordings of older versions have it.
OLDER = UserReply(pattern=".", reply="Yes.", grants=("no-order",))
QUESTIONS = st.text(max_size=60) | st.sampled_from(["You do not want me to order anything, right?", "Order?"])


@given(question=QUESTIONS, permission=st.none() | st.text(max_size=20) | st.just(SELLER.permission))
def test_nothing_is_permitted_that_the_call_does_not_name(question: str, permission: str | None) -> None:
    assert answered(question, permission, [ORDER, SELLER, OLDER], "Yes.").grants == ()


def test_the_permission_that_the_call_names_is_granted() -> None:
    question = answered("May I order?", "place an order", [SELLER, ORDER], None)
    assert (question.reply, question.fitted, question.grants) == ("Yes.", 1, ("no-order",))
    assert question.model_dump()["permission"] == "place an order"


def test_a_permission_does_not_answer_a_question_about_something_else() -> None:
    assert answered("What is my name?", "place an order", [ORDER], "Ann.").reply == "Ann."


def test_recordings_without_a_permission_stay_as_they_are() -> None:
    assert "permission" not in OLDER.model_dump()
    assert "permission" not in answered("x", None, [OLDER], None).model_dump()


def test_each_permission_is_offered_once_in_its_order() -> None:
    assert permissions_of([SELLER, OLDER, ORDER, SELLER]) == ("write to the seller", "place an order")
