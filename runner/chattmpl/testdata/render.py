"""Renders the templates of jinja2.json again with jinja2 3.1.6, set up as chat templates need it."""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


now = datetime.datetime(2024, 3, 5, 7, 8, 9, 123456)
env = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = now.strftime

with open("jinja2.json") as f:
    data = json.load(f)
for i, case in enumerate(data["cases"]):
    new = {"template": case["template"]}
    try:
        new["ok"] = env.from_string(case["template"]).render(**data["values"])
    except Exception as e:
        new["err"] = f"{type(e).__name__}: {e}"
    data["cases"][i] = new
with open("jinja2.json", "w") as f:
    json.dump(data, f, ensure_ascii=False, indent=1)
