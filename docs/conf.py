"""How the site is built: `make docs`, or `sphinx-build -W -n docs site`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import _command_line
import _docstrings  # before the package: it gives long unions of types their short names

import resonance_jax

project = "resonance_jax"
author = "the authors of resonance_jax"
release = version = resonance_jax.__version__
html_title = "resonance_jax"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["figures"]
myst_heading_anchors = 4
nitpicky = True
smartquotes_action = "D"  # dashes alone
highlight_language = "none"  # equations; Python says so

# Types of other packages: the site can be read without a network, so they are not linked.
OTHERS = r"(jax|numpy|np|xarray|xr|matplotlib|mpl|optax|flax|nn|collections|os|typing|pathlib|pandas)\..*"
PLAIN = r"Array|ArrayLike|Callable|Mapping|Sequence|Iterable|Any|Path|PathLike|optional|resonance_jax\.(?!\w+$).*"
nitpick_ignore_regex = [("py:.*", OTHERS), ("py:.*", PLAIN)]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Fields", "params_style")]
napoleon_use_rtype = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


def setup(app):
    _command_line.setup(app)
    _docstrings.setup(app)
