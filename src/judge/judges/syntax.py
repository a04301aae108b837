"""Python source in a form that only changes when the program does."""

import ast


def program_form(tree: ast.Module) -> str:
    """The syntax tree of a module as text, without what does not run: comments, layout and docstrings.

    Equal on every Python from 3.11 on, unlike `ast.dump` (later versions add fields), `ast.unparse` (its quotes and
    parentheses change) and tokens (f-strings change).
    """
    return _form(tree)


def _form(node: object) -> str:
    if isinstance(node, list):
        return f"[{','.join(_form(each) for each in node if not _is_docstring(each))}]"
    if isinstance(node, ast.JoinedStr):
        # Python 3.12 adds empty pieces.
        node = ast.JoinedStr([each for each in node.values if not _is_empty_text(each)])
    if isinstance(node, ast.AST):
        # Fields without a value are left out, because later versions have more of them.
        fields = [
            f"{name}={_form(value)}" for name, value in ast.iter_fields(node) if value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(fields)})"
    # Not `repr`, which escapes what the Unicode tables of this Python say.
    return ascii(node)


def _is_docstring(node: object) -> bool:
    """Whether it is a statement of only a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_empty_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""
