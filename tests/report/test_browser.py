"""The page in a browser: Chromium, from disk."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from reports import explained, random_report

from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import Finding, Verdict
from edgebelief.report import Report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = [pytest.mark.slow, pytest.mark.browser]
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
if CHROMIUM is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

COUNT_EDGES = """() => document.getElementById("graph-plot").data
    .filter((trace) => trace.name === "edges").reduce((n, trace) => n + trace.x.length / 3, 0)"""
MARKED = """() => Array.from(document.querySelectorAll("[data-matrix]")).map((plot) => {
    const cell = (plot.layout.shapes || []).at(-1);
    return cell ? [cell.y0 + 0.5, cell.x0 + 0.5] : null; })"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


class Log:
    """What a page did besides being drawn."""

    def __init__(self, page):
        self.requests, self.messages, self.dialogs, self.visits, self.windows = [], [], [], [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(f"pageerror: {error}"))
        page.on("dialog", self._dialog)
        page.on("framenavigated", lambda frame: self.visits.append(frame.url))
        page.on("popup", lambda popup: self.windows.append(popup.url))

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def check(self):
        """Nothing was asked for, said or opened."""
        outside = [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
        files = [url for url in self.requests if url.startswith("file:")]
        assert outside == []
        assert len(files) == 1, files
        assert self.messages == []
        assert self.dialogs == []
        assert self.windows == []
        assert len({url.split("#")[0] for url in self.visits}) == 1, self.visits


@pytest.fixture
def opened(browser, tmp_path):
    @contextmanager
    def open_page(report, scheme="light", width=1280):
        path = report.write(tmp_path / "report.html")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        page = context.new_page()
        log = Log(page)
        page.goto(path.as_uri())
        page.wait_for_selector("[data-matrix] .hm image", state="attached")
        yield page, log
        context.close()

    return open_page


def cell_of(page, kind, row, column):
    """Where a cell of a matrix is on the screen, once it is there."""
    show(page, f'[data-matrix="{kind}"]')
    return page.evaluate(
        """([kind, row, column]) => {
            const plot = document.querySelector(`[data-matrix="${kind}"]`);
            const box = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;
            return [box.left + xaxis._offset + xaxis.d2p(column),
                    box.top + yaxis._offset + yaxis.d2p(row)];
        }""",
        [kind, row, column],
    )


def node_at(page, k):
    """Where a node is on the screen, once it is there."""
    show(page, "#graph-plot")
    return page.evaluate(
        """(k) => {
            const plot = document.getElementById("graph-plot");
            const nodes = plot.data.find((trace) => trace.name === "nodes");
            const box = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;
            return [box.left + xaxis._offset + xaxis.d2p(nodes.x[k]),
                    box.top + yaxis._offset + yaxis.d2p(nodes.y[k])];
        }""",
        k,
    )


def show(page, selector):
    """Scroll to it, and wait for what scrolling sets off."""
    moved = page.evaluate(
        """(selector) => {
            const before = window.scrollY;
            document.querySelector(selector).scrollIntoView({ block: "center" });
            return window.scrollY !== before;
        }""",
        selector,
    )
    if moved:
        settle(page)


def settle(page):
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 50)))")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opens_from_disk_without_a_request_or_a_word(opened, scheme):
    data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    full = random_report([8, 8], check_draws=0)
    report = type(full).of(full.posterior, data, check_draws=50, recipe="again")
    with opened(report, scheme) as (page, log):
        settle(page)
        drawn = page.evaluate("() => document.querySelectorAll('.plot .main-svg').length")
        assert drawn >= page.locator(".plot").count()
        log.check()


def test_the_policy_holds(opened):
    """What a script that got in could not do: run, fetch, or show a picture from elsewhere."""
    with opened(random_report([4])) as (page, _):
        blocked = page.evaluate("""async () => {
            const found = [];
            document.addEventListener("securitypolicyviolation",
                (event) => found.push(event.effectiveDirective));
            const script = document.createElement("script");
            script.textContent = "window.__pwned = 1";
            document.body.append(script);
            new Image().src = "https://example.org/a.png";
            await fetch("https://example.org").catch(() => null);
            setTimeout("window.__pwned = 2", 0);
            await new Promise((go) => setTimeout(go, 100));
            return found;
        }""")
        assert {"script-src-elem", "script-src", "img-src", "connect-src"} == set(blocked)
        assert page.evaluate("() => window.__pwned") is None


def test_the_slider_decides_what_is_drawn(opened):
    report = random_report([20])
    mean = report.predictions[0].mean
    with opened(report) as (page, log):
        assert page.evaluate(COUNT_EDGES) == (mean >= 0.5).sum()
        for least in (0.0, 0.2, 0.7, 0.9, 1.0):
            page.locator("#least").fill(str(least))
            settle(page)
            # What the page rounds up to the slider's value counts as there.
            assert page.evaluate(COUNT_EDGES) == (np.round(mean, 6) >= least).sum()
            assert page.inner_text("#least-value") == f"{least:.2f}"
        assert "No pair has" in page.inner_text("#graph-status")
        page.locator("#least").fill("0.5")
        page.locator("#least").focus()
        counts = [page.evaluate(COUNT_EDGES)]
        for _ in range(30):
            page.keyboard.press("ArrowRight")
            settle(page)
            counts.append(page.evaluate(COUNT_EDGES))
        assert page.inner_text("#least-value") == "0.80"
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] == (mean >= 0.8).sum() < counts[0]
        log.check()


def test_colours_and_names_can_be_chosen(opened):
    with opened(random_report([10], labels="some")) as (page, log):
        colours = """() => new Set(document.getElementById("graph-plot").data
            .filter((trace) => trace.name === "edges").map((trace) => trace.line.color)).size"""
        page.locator("#least").fill("0")
        settle(page)
        assert page.evaluate(colours) == 1
        page.check('input[value="label"]')
        assert page.evaluate(colours) == 3
        page.check('input[value="epistemic"]')
        assert page.evaluate(colours) >= 1
        texts = page.locator("#graph-plot .scatterlayer text")
        assert texts.count() == 10
        page.uncheck("#show-names")
        assert texts.count() == 0
        log.check()


def test_the_selector_changes_graph_and_matrices(opened):
    report = random_report([5, 9, 7])
    with opened(report) as (page, log):
        nodes = """() => document.getElementById("graph-plot").data
            .find((trace) => trace.name === "nodes").x.length"""
        rows = """() => document.querySelector('[data-matrix="mean"]').data[0].z.length"""
        page.select_option("#graph-choice", "1")
        assert (page.evaluate(nodes), page.evaluate(rows)) == (9, 9)
        assert page.evaluate(COUNT_EDGES) == (report.predictions[1].mean >= 0.5).sum()
        assert page.input_value("#matrix-choice") == "1"
        page.locator("#matrix-choice").focus()
        page.keyboard.press("ArrowDown")
        assert (page.evaluate(nodes), page.evaluate(rows)) == (7, 7)
        assert page.input_value("#graph-choice") == "2"
        log.check()


def test_hover_in_one_matrix_marks_the_pair_in_all(opened):
    report = random_report([6], names=[list("abcdef")])
    record, belief = report.data[0], report.predictions[0]
    with opened(report) as (page, log):
        for kind in ("distance", "mean", "label", "total", "epistemic"):
            page.mouse.move(*cell_of(page, kind, 1, 3))
            settle(page)
            assert page.evaluate(MARKED) == [[1, 3]] * 5
            said = page.inner_text("#matrix-reading").split()
            assert said[:4] == ["source", "b", "target", "d"]
            k = 6  # the pair (1, 3) of 6 nodes, row by row
            assert f"{belief.mean[k]:.4f}" in said
            assert f"{belief.total_sd[k]:.4f}" in said
            assert f"{belief.epistemic_sd[k]:.4f}" in said
            assert float(said[said.index("distance") + 1]) == pytest.approx(record.e[k], rel=1e-4)
            assert said[-1] == "edge"
            assert ("no" in said) == (record.a[k] == 0)
            assert page.inner_text("#tip").split() == said
            page.mouse.move(2, 2)
            settle(page)
            assert page.evaluate(MARKED) == [None] * 5
            assert page.locator("#tip").is_hidden()
        page.locator("#matrix-grid").focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
        settle(page)
        assert page.evaluate(MARKED) == [[1, 2]] * 5
        assert page.inner_text("#matrix-reading").split()[:4] == ["source", "b", "target", "c"]
        log.check()


def test_hover_in_the_graph_tells_of_edges_and_nodes(opened):
    report = random_report([5], names=[["ada", "bob", "cy", "dee", "eve"]])
    with opened(report) as (page, log):
        page.locator("#least").fill("0")
        settle(page)
        page.mouse.move(*node_at(page, 2))
        assert page.inner_text("#tip").split()[:2] == ["node", "cy"]
        (ax, ay), (bx, by) = node_at(page, 0), node_at(page, 1)
        page.mouse.move(ax + 0.3 * (bx - ax), ay + 0.3 * (by - ay))
        said = page.inner_text("#tip").split()
        assert said[:4] == ["source", "ada", "target", "bob"]
        assert f"{report.predictions[0].mean[0]:.4f}" in said
        page.mouse.move(2, 2)
        assert page.locator("#tip").is_hidden()
        log.check()


def test_everything_is_reached_by_tab_and_seen_to_be(opened):
    with opened(random_report([6, 5], recipe="again")) as (page, log):
        reached, outlined = [], []
        for _ in range(40):
            page.keyboard.press("Tab")
            found = page.evaluate("""() => { const one = document.activeElement;
                return [one.id || one.getAttribute("aria-label") || one.textContent.trim(),
                        getComputedStyle(one).outlineStyle]; }""")
            reached.append(found[0])
            outlined.append(found[1] != "none")
        assert reached[0] == "Skip to the content"
        for name in (
            "graph-choice", "least", "show-names", "matrix-choice", "matrix-grid", "copy",
            "The most probable edges", "Scores", "Settings",
        ):  # fmt: skip
            assert name in reached, name
        body = reached.index("Settings")
        assert all(outlined[: body + 1])
        log.check()


def test_colours_follow_the_system_while_open(opened):
    with opened(random_report([6])) as (page, log):
        ink = """() => [document.getElementById("graph-plot"),
            document.querySelector("[data-parameter]")].map((plot) => plot.layout.font.color)"""
        light = page.evaluate(ink)
        page.emulate_media(color_scheme="dark")
        settle(page)
        dark = page.evaluate(ink)
        assert light[0] == light[1] != dark[0] == dark[1]
        page.emulate_media(color_scheme="light")
        settle(page)
        assert page.evaluate(ink) == light
        log.check()


TERMS = """() => Array.from(document.querySelectorAll("[data-term]")).map((plot) => ({
    range: plot.layout.yaxis.range, mean: plot.data.at(-1).y, lines: plot.data.length,
    title: plot.layout.xaxis.title.text, ink: plot.layout.font.color,
    color: (plot.data.at(-1).line || plot.data.at(-1).marker).color,
    error: plot.data.at(-1).error_y ? plot.data.at(-1).error_y.array.length : 0 }))"""


def test_terms_are_drawn_on_one_scale(opened, additive):
    report = Report.of(*additive, check_draws=0)
    with opened(report) as (page, log):
        found = page.evaluate(TERMS)
        assert [one["title"] for one in found] == [curve.name for curve in report.terms]
        for one, curve in zip(found, report.terms, strict=True):
            assert one["range"] == found[0]["range"]
            assert one["range"][0] < curve.low.min()
            assert one["range"][1] > curve.high.max()
            np.testing.assert_allclose(one["mean"], curve.mean, rtol=1e-3, atol=1e-4)
            assert (one["lines"], one["error"]) == ((1, 3) if curve.levels else (3, 0))
        page.emulate_media(color_scheme="dark")
        settle(page)
        assert {one["ink"] for one in page.evaluate(TERMS)}.isdisjoint({found[0]["ink"]})
        log.check()


def test_hover_over_a_term_tells_what_it_adds(opened, additive):
    report = Report.of(*additive, check_draws=0)
    k = [curve.name for curve in report.terms].index("road")
    with opened(report) as (page, log):
        show(page, f'[data-term="{k}"]')
        at = page.evaluate(
            """(k) => {
                const plot = document.querySelector(`[data-term="${k}"]`);
                const box = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;
                return [box.left + xaxis._offset + xaxis.d2p(1),
                        box.top + yaxis._offset + yaxis.d2p(plot.data[0].y[1])];
            }""",
            k,
        )
        page.mouse.move(*at)
        settle(page)
        said = page.inner_text("#tip").split()
        assert said[:5] == ["term", "road", "value", "motorway", "adds"]
        mean = report.terms[k].mean[1]
        assert float(said[5].replace("\u2212", "-")) == pytest.approx(mean, abs=0.006)
        page.mouse.move(2, 2)
        settle(page)
        assert page.locator("#tip").is_hidden()
        log.check()


@pytest.mark.parametrize("width", [1280, 420])
def test_rows_open_with_the_keyboard_to_tell_why(opened, additive, width):
    report = Report.of(*additive, check_draws=0)
    with opened(report, width=width) as (page, log):
        first = page.locator(".why details").first
        assert first.locator("table").is_hidden()
        first.locator("summary").focus()
        page.keyboard.press("Enter")
        assert first.locator("table").is_visible()
        rows = first.locator("tbody tr")
        assert rows.count() == 7  # weight, baseline, four terms and their sum
        assert rows.last.inner_text().startswith("log odds")
        box = first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        # However far the table is scrolled.
        page.evaluate("() => { document.querySelector('#pairs .scroll').scrollLeft = 500; }")
        settle(page)
        assert 0 <= first.bounding_box()["x"] < 0.2 * width
        page.keyboard.press("Enter")
        assert first.locator("table").is_hidden()
        log.check()


def test_zooming_one_matrix_zooms_all(opened):
    with opened(random_report([12])) as (page, log):
        start, end = cell_of(page, "mean", 2, 2), cell_of(page, "mean", 6, 6)
        page.mouse.move(*start)
        page.mouse.down()
        page.mouse.move(*end, steps=5)
        page.mouse.up()
        page.wait_for_timeout(300)
        widths = page.evaluate("""() => Array.from(document.querySelectorAll("[data-matrix]"))
            .map((plot) => plot.layout.xaxis.range[1] - plot.layout.xaxis.range[0])""")
        assert max(widths) < 8
        assert np.ptp(widths) < 1e-6
        log.check()


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("kind", ["plain", "long"])
def test_nothing_sticks_out(opened, width, kind):
    long = [[f"{'W' * 190}{k}" for k in range(12)]]
    report = random_report(
        [12], labels="some", names=long if kind == "long" else None, recipe="x" * 300,
        title="T" * 200, assumptions=["A" * 300], settings={"s" * 60: "v" * 400},
        verdict=Verdict({"f" * 80: 1.0}, (Finding("n" * 90, 1.0, "m" * 300),)),
    )  # fmt: skip
    terms = long[0] if kind == "long" else ["age", "kind"]
    report = explained(report, terms, terms)
    with opened(report, width=width) as (page, log):
        assert page.evaluate(OVERFLOW) <= 0
        for summary in page.locator("summary").all():
            summary.click()
        page.mouse.move(*cell_of(page, "mean", 1, 3))
        settle(page)
        assert page.evaluate(OVERFLOW) <= 0
        outside = page.evaluate("""() => Array.from(document.querySelectorAll("section *"))
            .filter((one) => !one.closest(".scroll, pre, .plot"))
            .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1)
            .map((one) => one.outerHTML.slice(0, 80))""")
        assert outside == []
        whys = """() => Array.from(document.querySelectorAll(".why details, .why details *"))
            .map((one) => one.getBoundingClientRect().right)"""
        assert max(page.evaluate(whys)) <= width
        tip = page.locator("#tip").bounding_box()
        assert tip["x"] >= 0
        assert tip["x"] + tip["width"] <= width
        button, recipe = (page.locator(one).bounding_box() for one in ("#copy", "#recipe"))
        beside = recipe["x"] + recipe["width"] <= button["x"]
        assert beside or button["y"] + button["height"] <= recipe["y"]  # or above
        log.check()


PAYLOAD = "window.__pwned=1"
NAMES = [
    f"<script>{PAYLOAD}</script>",
    f"</script><script>{PAYLOAD}</script>",
    f"<img src=x onerror={PAYLOAD}>",
    f'"><img src=x onerror="{PAYLOAD}">',
    f"'><svg onload='{PAYLOAD}'>",
    f"<svg/onload={PAYLOAD}>",
    f'<a href="javascript:{PAYLOAD}">x</a>',
    '<a href="https://example.org/">y</a>',
    '<a href="https://example.org/" target="_blank" popup="width=1">z</a>',
    f'<iframe srcdoc="<script>{PAYLOAD}</script>">',
    f"<details open ontoggle={PAYLOAD}>",
    f'<body onload="{PAYLOAD}">',
    f'" autofocus onfocus="{PAYLOAD}" x="',
    f"' onmouseover='{PAYLOAD}",
    f"javascript:{PAYLOAD}",
    "<b>bold</b>", "<i>it</i>", "<br>", "line<br>break", "<sub>1</sub>", "<sup>2</sup>",
    '<span style="font-size:99px">big</span>', "<em>e</em>", "<u>u</u>", "<s>s</s>",
    '<span style="background:url(https://example.org/a)">u</span>',
    "%{x}", "%{customdata}", "%{text}<extra></extra>", "${7*7}", "{{ 7 * 7 }}", "{% raw %}",
    "&lt;b&gt;", "&amp;", "&#60;script&#62;", "&#x3c;b&#x3e;", "&nbsp;", "&", "<", ">", "<>",
    f"=HYPERLINK(\"javascript:{PAYLOAD}\")", "=cmd()", "+1", "-1", "@SUM(1)",
    "\u202egnp.exe", "\u2066a\u2067b", "\u200f\u0645\u0631\u062d\u0628\u0627",
    "\u2028", "\u2029", "\x00", "\ufeff", "\ud83d",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\"'`", "\\u003cscript>", "]]>", "<!--",
    "$\\href{javascript:1}{x}$",
]  # fmt: skip


def shortened(name, longest):
    return name[: longest - 1] + "…" if len(name) > longest else name


def test_there_are_sixty_hostile_names():
    assert len(NAMES) == len(set(NAMES)) == 60


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_names_execute_nothing_and_make_nothing(opened, scheme):
    from edgebelief.report.payload import clean

    def made(names, text):
        finding = Finding(text, 1.0, text)
        report = random_report(
            [60, 60], labels="some", names=[names, names[::-1]], title=text, assumptions=[text],
            settings={text: text}, recipe=text, verdict=Verdict({text: 1.0}, (finding,)),
        )  # fmt: skip
        return explained(report, names, names)

    census = """() => { const found = {};
        for (const one of document.querySelectorAll("*")) {
            if (one.closest(".plot")) continue;
            found[one.tagName] = (found[one.tagName] || 0) + 1;
        } return found; }"""
    inside = """() => document.querySelectorAll(
        ".plot a, .plot img, .plot iframe, .plot script, .plot b, .tip a, .tip img, .tip b, " +
        ".pair a, .pair img, .pair b, main a, main img, main iframe, main script").length"""

    with opened(made([f"node {k}" for k in range(60)], "plain"), scheme) as (page, _):
        page.mouse.move(*cell_of(page, "mean", 0, 1))
        settle(page)
        expected = page.evaluate(census)

    with opened(made(NAMES, NAMES[1]), scheme) as (page, log):
        clear = [clean(name) for name in NAMES]

        # Literally what it says, where Plotly writes it.
        page.check("#show-names")
        labels = page.locator("#graph-plot .scatterlayer text").all_text_contents()
        assert len(labels) == 60
        for label, name in zip(labels, clear, strict=True):
            assert visible(label) == visible(shortened(name, 16)), name
        ticks = page.locator('[data-matrix="mean"] .ytick text').all_text_contents()
        assert set(map(visible, ticks)) <= {visible(shortened(name, 9)) for name in clear}
        assert len(ticks) > 10

        titles = page.locator("[data-term] .xtitle").all_text_contents()
        assert len(titles) == 24
        for title, name in zip(titles[1:], clear, strict=False):
            assert visible(title) == visible(shortened(name, 30)), name
        levels = page.locator('[data-term="0"] .xtick text').all_text_contents()
        assert set(map(visible, levels)) <= {visible(shortened(name, 10)) for name in clear}
        assert len(levels) > 3

        # Every name in both tooltips, the pair's reading, by mouse and by keys.
        for k in range(60):
            page.mouse.move(*cell_of(page, "mean", k, (k + 1) % 60))
            settle(page)
            for place in ("#tip", "#matrix-reading"):
                shown = page.locator(f"{place} bdi").all_text_contents()
                assert shown == [clear[k], clear[(k + 1) % 60]]
            page.mouse.move(*node_at(page, k))
            assert page.locator("#tip bdi").all_text_contents()[0] in clear
            page.mouse.click(*node_at(page, k))
        page.mouse.move(*cell_of(page, "mean", 0, 1))
        settle(page)
        assert page.evaluate(census) == expected

        # What raised and lowered the edges, and the terms in numbers.
        for summary in page.locator("summary").all():
            summary.click()
        said = page.locator(".reasons bdi").all_text_contents()
        assert set(said) <= {*clear, "weight", ""}
        assert len(set(said)) > 20
        said = page.locator("#terms tbody th bdi").all_text_contents()
        assert said == [clear[-1], *clear]
        for plot in page.locator("[data-term]").all()[:6]:
            plot.hover()
            settle(page)
            shown = page.locator("#tip bdi").all_text_contents()
            assert set(shown) <= {*clear, *"01234"}
            assert len(shown) == 2

        # Every control.
        page.select_option("#graph-choice", "1")
        for value in ("epistemic", "label", "belief"):
            page.check(f'input[value="{value}"]')
        for least in ("0", "1", "0.3"):
            page.locator("#least").fill(least)
            settle(page)
        page.uncheck("#show-names")
        page.check("#show-names")
        page.click("#copy")
        page.locator("#matrix-grid").focus()
        for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"):
            page.keyboard.press(key)
        page.set_viewport_size({"width": 420, "height": 900})
        page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
        settle(page)
        page.emulate_media(media="print")
        settle(page)
        page.emulate_media(media="screen")
        assert page.evaluate(inside) == 0
        assert page.evaluate("() => window.__pwned") is None
        log.check()


def visible(text):
    """Without what SVG text collapses or a browser puts for it: white space of any kind."""
    return "".join(text.split()).replace("\u200b", "")
