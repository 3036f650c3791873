"""The page of the command line, from the help that the commands give."""

import click

from hpobench_ordered.cli import app

PROGRAM = "hpobench-ordered"
WIDTH = 80
INTRODUCTION = """# Command line

Results go to standard output, progress and messages to standard error. Exit codes: 0 success,
1 something failed, 2 invalid arguments or input, 130 interrupted. A command that was stopped continues
when it is given again.
"""


def text() -> str:
    """The help of every command."""
    names = app.context_settings["help_option_names"]
    with click.Context(
        app, info_name=PROGRAM, terminal_width=WIDTH, help_option_names=names
    ) as context:
        sections = [INTRODUCTION, *_sections(app, context)]
    return "\n".join(sections)


def _sections(command: click.Command, context: click.Context) -> list[str]:
    """The section of a command, and those of its commands."""
    level = "#" * (1 + len(context.command_path.split()))
    # Defaults that depend on the machine, as its number of processors, are described in words.
    sections = [f"{level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"]
    if not isinstance(command, click.Group):
        return sections

    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is not None and not child.hidden:
            with click.Context(
                child, info_name=name, parent=context, terminal_width=WIDTH
            ) as child_context:
                sections += _sections(child, child_context)
    return sections
