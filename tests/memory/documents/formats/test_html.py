"""Of a page remains what its reader would read."""

import pytest

from memory.documents.formats.blocks import UnreadableDocument
from memory.documents.formats.html import declared_encoding, parse

PAGE = r"""<?xml version="1.0" encoding="UTF-8"?>
<!doctype html><html><head><title>Tea &mdash; the&#10; guide</title><style>p { color: red }</style></head>
<body><header><h1>Site</h1></header><nav><a href="/">Home</a></nav><div role="navigation">Menu</div>
<article><header><h1>Brewing __init__<a href="#b">¶</a></h1></header>
<p>Use <code>\.fill()</code> with <b>care</b> and <a href="/x">patience</a>.<script>evil()</script></p>
<!-- a note to ourselves -->
<p># 1 is no heading, 2 * 3 > 5, and a_b stays</p>
<p>1. no list</p>
<h2>Leaves</h2><ul><li>green<ul><li>sencha</li></ul></li><li>black</li></ul>
<pre><code class="language-python"># no heading

x = "a &lt; b"
</code></pre>
<pre class="language-sh">ls \*</pre>
<pre>bare</pre>
<table><tr><th>leaf</th><th>min</th></tr><tr><td>sencha</td><td>2</td></tr></table>
<img src="a.png" alt="kettle"><aside>kept, for it is the article's</aside></article>
<aside>advertisement</aside><footer>(c) 2026</footer></body></html>"""


def test_headings_lists_tables_and_code_stay_and_the_rest_goes() -> None:
    parsed = parse(PAGE)
    assert parsed.title == "Tea — the guide"
    assert [(block.kind, block.text) for block in parsed.blocks] == [
        ("heading", "Brewing __init__"),
        ("text", r"Use `\.fill()` with **care** and patience."),
        ("text", "# 1 is no heading, 2 * 3 > 5, and a_b stays"),
        ("text", "1. no list"),
        ("heading", "Leaves"),
        ("list", "- green\n  - sencha\n- black"),
        ("code", '```python\n# no heading\n\nx = "a < b"\n```'),
        ("code", "```sh\nls \\*\n```"),
        ("code", "```\nbare\n```"),
        ("table", "| leaf | min |\n| --- | --- |\n| sencha | 2 |"),
        ("text", "kept, for it is the article's"),
    ]


def test_the_main_part_is_read_alone_where_there_is_one() -> None:
    parsed = parse("<body><p>Before</p><main><h1>Tea</h1><p>Boil.</p></main><p>After</p></body>")
    assert [block.text for block in parsed.blocks] == ["Tea", "Boil."]
    assert parsed.title == "Tea"


def test_a_page_says_its_encoding_and_one_nested_beyond_reason_is_told() -> None:
    assert declared_encoding(b'<meta charset="windows-1255"><p>') == "windows-1255"
    assert declared_encoding(b"<p>none</p>") is None
    with pytest.raises(UnreadableDocument, match="nested too deeply"):
        parse("<div>" * 3_000 + "x" + "</div>" * 3_000)
