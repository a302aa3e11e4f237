"""`python docs/figures/first_heatmap.py`: docs/first_heatmap.png, drawn by the code of docs/first_heatmap.md itself."""

import doctest
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

PAGE = Path(__file__).parent.parent / "first_heatmap.md"

if __name__ == "__main__":
    plt.switch_backend("Agg")
    block = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    names = {}
    for example in doctest.DocTestParser().get_examples(block):
        exec(compile(example.source, PAGE.name, "single"), names)
    picture = PAGE.with_suffix(".png")
    names["ax"].figure.savefig(picture, dpi=140)
    Image.open(picture).convert("RGB").quantize(256).save(picture, optimize=True)
