"""The directive `{command-line}`: every command of `resonance` with its arguments, as `--help` prints them."""

import inspect
import re

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def inline(text):
    """Text with options and names in backticks set as code."""
    for part in re.split(r"(`[^`]+`|--[a-z][\w-]*)", text):
        yield nodes.literal(text=part.strip("`")) if part.startswith(("`", "--")) else nodes.Text(part)


def prose(text):
    return nodes.paragraph("", "", *inline(text))


class CommandLine(SphinxDirective):
    """A section for each command."""

    def run(self):
        from resonance_cli.app import app

        group = typer.main.get_command(app)
        return [self.section(name, command) for name, command in group.commands.items()]

    def section(self, name, command):
        section = nodes.section(ids=[f"resonance-{name}"], names=[f"resonance {name}"])
        section += nodes.title(text=f"resonance {name}")
        for paragraph in inspect.cleandoc(command.help).split("\n\n"):
            kept = paragraph.startswith("\b\n") and paragraph.removeprefix("\b\n").startswith("resonance ")
            text = paragraph.removeprefix("\b\n")
            section += nodes.literal_block(text, text, language="none") if kept else prose(text)
        section += nodes.bullet_list("", *(self.item(each) for each in command.params))
        return section

    def item(self, parameter):
        """One argument or option, its default, and what it does."""
        names = ", ".join(parameter.opts + parameter.secondary_opts)
        shown = parameter.metavar if parameter.param_type_name == "argument" else names
        default = parameter.default if isinstance(parameter.default, str | int | float) else None
        text = getattr(parameter, "help", "") or ""
        if default not in (None, False, True, ""):
            text += f" Default: {getattr(default, 'value', default)}."
        return nodes.list_item("", nodes.paragraph("", "", nodes.literal(text=shown), nodes.Text(": "), *inline(text)))


def setup(app):
    app.add_directive("command-line", CommandLine)
