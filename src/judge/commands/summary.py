"""What a command does, read from its source: the list of all commands imports none of them."""

import ast
from collections.abc import Iterator

from shared.seams import file_of


def summary_of(module: str, name: str) -> str | None:
    """The help of the function or group `name` in a module; `None` if its source does not contain it.

    A group's is its `help`, or the docstring of its callback.
    """
    file = file_of(module)
    try:
        tree = ast.parse(file.read_bytes()) if file else None
    except (OSError, SyntaxError, ValueError):
        return None
    return next(_helps(tree, name), None) if tree else None


def _helps(tree: ast.Module, name: str) -> Iterator[str]:
    """All that the module says about `name`, what counts first."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    yield from filter(None, (ast.get_docstring(node) for node in functions if node.name == name))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=group)], value=ast.Call(keywords=keywords)) if group == name:
                for each in keywords:
                    if each.arg == "help" and isinstance(each.value, ast.Constant):
                        yield str(each.value.value)
    yield from filter(None, (ast.get_docstring(node) for node in functions if _is_callback(node, name)))


def _is_callback(function: ast.FunctionDef, group: str) -> bool:
    """Whether the function is decorated with `group.callback(…)`."""
    for decorator in function.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="callback")) if name == group:
                return True
    return False
